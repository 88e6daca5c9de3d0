package ratelimit

// AddMembers is for the external tests.
var AddMembers = addMembers
