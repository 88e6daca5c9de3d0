package params

import (
	"reflect"
	"slices"
)

// bindFiles sets a field to the files that a form has for it.
func (b *binder) bindFiles(f *field, v reflect.Value) error {
	u, err := b.upload()
	if err != nil {
		return err
	}
	switch files := u.filesNamed(f.name); {
	case len(files) == 0 && f.required:
		b.note(f, "", ErrMissing, "is missing", nil)
	case f.many:
		fieldAt(v, f.index).Set(reflect.ValueOf(files))
	case len(files) > 1:
		b.note(f, "", ErrMalformed, givenTimesDetail(len(files)), nil)
	case len(files) == 1:
		fieldAt(v, f.index).Set(reflect.ValueOf(files[0]))
	}
	return nil
}

// upload returns the multipart form. A form of another type has no files.
func (b *binder) upload() (*upload, error) {
	if b.params.contentOf(b.r).kind != multipartKind {
		return &upload{}, nil
	}
	return b.params.upload(b.r)
}

// noteUnknownFiles notes the files that no field is for.
func (b *binder) noteUnknownFiles(fields []field) error {
	u, err := b.upload()
	if err != nil || !b.options.DisallowUnknownFields {
		return err
	}
	for _, file := range u.files {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.isFile() && f.name == file.Name }) {
			b.faults.note(malformedError(SourceForm, shorten(file.Name), "is unknown"))
		}
	}
	return nil
}
