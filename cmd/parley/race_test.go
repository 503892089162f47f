//go:build race

package main

const racing = true // with the race detector everything takes several times as long
