import { useCallback, useEffect, useRef, useState } from 'react'
import { useSessionBus } from '../wire/bus'
import { readLog } from '../wire/log'
import type { LogEvent } from '../wire/log.generated'

const together = 250 // milliseconds within which events are fetched with one request

// useLog loads the part of a session's log that belongs to a run. While the run is active, the bus announces new
// events, and one request at a time fetches them.
export function useLog(session: string, run: number, live: boolean) {
  const [events, setEvents] = useState<LogEvent[]>()
  const [error, setError] = useState<unknown>(null)
  const more = useRef(() => {})

  useEffect(() => {
    setEvents(undefined)
    setError(null)
    const ended = new AbortController()
    let head = run - 1
    const until = (event: LogEvent) => event.type === 'RunFinished' && event.run === run
    let busy = false
    let told = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const fetch = async () => {
      busy = true
      told = false
      try {
        const added = await readLog(session, { after: head, until, signal: ended.signal })
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
  }, [session, run])

  const again = useCallback(() => more.current(), [])
  useSessionBus(live ? session : undefined, again)
  return { events, error, again }
}
