//go:build race

package main

const racing = true // with the race detector, tests take several times as long
