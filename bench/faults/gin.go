package faults

import (
	"io"
	"net/http"

	"github.com/gin-contrib/sessions"
	"github.com/gin-contrib/sessions/redis"
	"github.com/gin-gonic/gin"
)

// openGin opens a handler with the session middleware of gin. It has the routes of [session.Contender] that are used.
func openGin(addr string) (http.Handler, func() error, error) {
	store, err := redis.NewStore(64, "tcp", addr, "", "", []byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		return nil, nil, err
	}
	inner, err := redis.GetRedisStore(store)
	if err != nil {
		return nil, nil, err
	}
	gin.SetMode(gin.ReleaseMode)
	h := gin.New()
	h.Use(sessions.Sessions("session", store))
	h.POST("/login", saving(func(c *gin.Context, s sessions.Session) { s.Set("user", c.Request.URL.RawQuery) }))
	h.POST("/put", saving(func(c *gin.Context, s sessions.Session) {
		s.Set(c.Request.URL.RawQuery, "value")
		_, _ = io.Copy(io.Discard, c.Request.Body)
	}))
	h.POST("/logout", saving(func(_ *gin.Context, s sessions.Session) { s.Options(sessions.Options{MaxAge: -1}) }))
	h.GET("/get", func(c *gin.Context) {
		value, _ := sessions.Default(c).Get(c.Request.URL.RawQuery).(string)
		_, _ = io.WriteString(c.Writer, value)
	})
	return h, inner.Close, nil
}

// saving returns a handler that saves the session at its end.
func saving(change func(*gin.Context, sessions.Session)) gin.HandlerFunc {
	return func(c *gin.Context) {
		s := sessions.Default(c)
		change(c, s)
		if err := s.Save(); err != nil {
			_ = c.AbortWithError(http.StatusInternalServerError, err)
		}
	}
}
