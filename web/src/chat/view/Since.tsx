import { useEffect, useState } from 'react'
import { lasting } from '../../ui/time'
import { useConnection } from '../../wire/connection'

// Since counts the seconds something goes on for, from the second on in which it
// is worth knowing. It stands still while the server cannot be reached: nobody knows whether it goes on.
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
