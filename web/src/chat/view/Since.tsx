import { useEffect, useState } from 'react'
import { lasting } from '../../ui/time'

// Since counts the seconds something goes on for, from the second on in which it
// is worth knowing.
export function Since({ at, from = 2 }: { at: number; from?: number }) {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  const seconds = Math.floor((now - at) / 1000)
  if (seconds < from || seconds > 7 * 86_400) return null
  return (
    <span aria-hidden="true" className="tabular-nums text-ink-soft">
      {seconds < 60 ? `${seconds} s` : lasting(seconds * 1000)}
    </span>
  )
}
