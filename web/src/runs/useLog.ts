import { useCallback, useEffect, useRef, useState } from 'react'
import { useSessionBus } from '../wire/bus'
import { readLog, type LogEvent } from '../wire/log'

const together = 250 // milliseconds in which what happens is fetched once

// useLog is the log of a session and, while it is live, what is added to it: the
// bus says that there is something, and the log is asked for what comes after.
// One request at a time: what is told meanwhile is fetched by the next.
export function useLog(session: string | undefined, live: boolean) {
  const [events, setEvents] = useState<LogEvent[]>()
  const [error, setError] = useState<unknown>(null)
  const more = useRef(() => {})

  useEffect(() => {
    setEvents(undefined)
    setError(null)
    if (session === undefined) return
    const ended = new AbortController()
    let head = 0
    let busy = false
    let told = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const fetch = async () => {
      busy = true
      told = false
      try {
        const added = await readLog(session, head, ended.signal)
        if (ended.signal.aborted) return
        head = added.at(-1)?.seq ?? head
        setEvents((was) => (was === undefined ? added : added.length === 0 ? was : [...was, ...added]))
        setError(null)
      } catch (problem) {
        if (ended.signal.aborted) return
        setError(problem)
      }
      busy = false
      if (told) more.current()
    }
    more.current = () => {
      told = true
      if (busy || timer !== undefined) return
      timer = setTimeout(() => {
        timer = undefined
        void fetch()
      }, together)
    }
    void fetch()
    return () => {
      more.current = () => {}
      clearTimeout(timer)
      ended.abort()
    }
  }, [session])

  const again = useCallback(() => more.current(), [])
  useSessionBus(live ? session : undefined, again)
  return { events, error, again }
}
