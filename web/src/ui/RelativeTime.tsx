import { useEffect, useState } from 'react'
import { since } from './time'

// One clock for all times on the page; it stops while the tab is hidden.
let now = Date.now()
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

function tick(): void {
  now = Date.now()
  for (const listener of listeners) listener()
}

function onTick(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(() => document.visibilityState === 'visible' && tick(), 10_000)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

// Created once: creating a formatter takes longer than rendering the rest of a
// row.
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'medium' })

export function RelativeTime({ at, className, short }: { at: string | number; className?: string; short?: boolean }) {
  const [, again] = useState(0)
  useEffect(() => onTick(() => again((n) => n + 1)), [])
  const then = typeof at === 'number' ? at : Date.parse(at)
  if (Number.isNaN(then)) return null
  const date = new Date(then)
  const said = since(then, Math.max(now, Date.now() - 10_000))
  return (
    <time dateTime={date.toISOString()} title={exact.format(date)} className={className}>
      {short ? said.replace(/ ago$/, '') : said}
    </time>
  )
}
