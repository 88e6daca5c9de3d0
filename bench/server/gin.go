package server

import (
	"net/http"
	"time"

	"github.com/gin-contrib/sessions"
	"github.com/gin-contrib/sessions/redis"
	"github.com/gin-gonic/gin"
	"github.com/ulule/limiter/v3"
	limit "github.com/ulule/limiter/v3/drivers/middleware/gin"
	limitstore "github.com/ulule/limiter/v3/drivers/store/redis"
)

// openGin is eager middleware on gin: its contributed sessions on Redis, and ulule's
// limiter, which comes with middleware for gin and with a store on go-redis.
func openGin(addr string) (http.Handler, error) {
	store, err := redis.NewStore(poolSize, "tcp", addr, "", "", []byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		return nil, err
	}
	counters, err := limitstore.NewStore(newRedis(addr))
	if err != nil {
		return nil, err
	}
	limits := limit.NewMiddleware(limiter.New(counters, limiter.Rate{Period: time.Minute, Limit: perMinute}))

	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(limits, sessions.Sessions("session", store), authenticate)
	r.POST("/login", func(c *gin.Context) {
		s := sessions.Default(c)
		s.Set(userField, user)
		if err := s.Save(); err != nil {
			_ = c.AbortWithError(http.StatusInternalServerError, err)
		}
	})
	r.GET("/light", func(c *gin.Context) { _ = lightPage.write(c.Writer) })
	r.GET("/full", func(c *gin.Context) {
		_ = page{c.GetString(userField), c.Query("q")}.write(c.Writer)
	})
	return r, nil
}

// authenticate puts the user into the context, as the middleware of a program with a
// login does. It is what makes this stack eager: the sessions load themselves only
// when something asks.
func authenticate(c *gin.Context) {
	name, _ := sessions.Default(c).Get(userField).(string)
	c.Set(userField, name)
}
