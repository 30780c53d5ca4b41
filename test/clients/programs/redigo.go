// Asks a node with redigo as an application would. Prints `check<TAB>ok`, or what was seen instead.
package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/gomodule/redigo/redis"
)

func main() {
	port, prefix := os.Args[1], os.Args[2]
	client, err := redis.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Printf("handshake\t%v\n", err)
		return
	}
	defer client.Close()
	report := func(check string, found interface{}, wanted interface{}, err error) {
		switch {
		case err != nil:
			fmt.Printf("%s\t%s\n", check, strings.ReplaceAll(err.Error(), "\n", " "))
		case reflect.DeepEqual(found, wanted):
			fmt.Printf("%s\tok\n", check)
		default:
			fmt.Printf("%s\t%v instead of %v\n", check, found, wanted)
		}
	}
	ping := func() (string, error) { return redis.String(client.Do("PING")) }

	pong, err := ping()
	report("handshake", pong, "PONG", err)

	bytes := make([]byte, 256)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	echoed, err := redis.Bytes(client.Do("ECHO", bytes))
	report("echo", echoed, bytes, err)

	var granted, remaining []int
	for i := 0; i < 4 && err == nil; i++ {
		var answer []int
		if answer, err = redis.Ints(client.Do("ALLOW", prefix+"a")); err == nil {
			granted = append(granted, answer[0])
		}
	}
	report("grants", granted, []int{1, 1, 1, 0}, err)

	for i := 0; i < 2 && err == nil; i++ {
		var answer []int
		if answer, err = redis.Ints(client.Do("ALLOW", prefix+"r", "ID", "one")); err == nil {
			remaining = append(remaining, answer[2])
		}
	}
	report("repeats", remaining, []int{2, 2}, err)

	for i := 0; i < 100; i++ {
		_ = client.Send("ALLOW", fmt.Sprintf("%sp%d", prefix, i))
	}
	err = client.Flush()
	count := 0
	for i := 0; i < 100 && err == nil; i++ {
		var answer []int
		if answer, err = redis.Ints(client.Receive()); err == nil {
			count += answer[0]
		}
	}
	report("pipeline", count, 100, err)

	throttled, err := redis.Ints(client.Do("CL.THROTTLE", prefix+"t", 2, 3, 60))
	report("throttle", throttled, []int{0, 3, 2, -1, 20}, err)

	_, refusal := client.Do("FLUSHALL")
	_, isAnswer := refusal.(redis.Error)
	pong, err = ping()
	report("error", []interface{}{isAnswer, pong}, []interface{}{true, "PONG"}, err)
}
