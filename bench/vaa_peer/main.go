// The peer of bench/wormhole_decode.py: vaa.Unmarshal of Wormhole's Go SDK and the digest that guardians sign,
// for every VAA of a file, on one core. Prints the CPU seconds of the fastest of some runs, and a checksum of
// what it read.
//
// Input: per VAA its length (u32, big-endian) and its bytes.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/wormhole-foundation/wormhole/sdk/vaa"
)

const runs = 5

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func main() {
	runtime.GOMAXPROCS(1)
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var raws [][]byte
	for at := 0; at < len(data); {
		size := int(binary.BigEndian.Uint32(data[at:]))
		raws = append(raws, data[at+4:at+4+size])
		at += 4 + size
	}
	best, sum := 0.0, byte(0)
	for run := 0; run < runs; run++ {
		begin := cpuSeconds()
		sum = 0
		for _, raw := range raws {
			v, err := vaa.Unmarshal(raw)
			if err != nil {
				panic(err)
			}
			sum ^= v.SigningDigest().Bytes()[0]
		}
		if took := cpuSeconds() - begin; run == 0 || took < best {
			best = took
		}
	}
	fmt.Printf("{\"rows\": %d, \"seconds\": %f, \"checksum\": %d}\n", len(raws), best, sum)
}
