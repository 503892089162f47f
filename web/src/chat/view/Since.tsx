import { useEffect, useState } from 'react'
import { lasting } from '../../ui/time'
import { useConnection } from '../../wire/connection'

// Since counts the seconds of an activity, after its first few seconds. It stops while the server is unreachable: the
// state is unknown then.
export function Since({ at, from = 2 }: { at: number; from?: number }) {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  const { state, since } = useConnection()
  const seen = state === 'online' || since === undefined ? now : Math.min(now, since.getTime())
  const seconds = Math.floor((seen - at) / 1000)
  if (seconds < from || seconds > 7 * 86_400) return null
  return (
    <span aria-hidden="true" className="tabular-nums text-ink-soft">
      {seconds < 60 ? `${seconds} s` : lasting(seconds * 1000)}
    </span>
  )
}
