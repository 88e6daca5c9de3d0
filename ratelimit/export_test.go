package ratelimit

// AddMembers makes addMembers available to tests in package ratelimit_test.
var AddMembers = addMembers
