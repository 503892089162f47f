// since says how long ago or how far ahead a time is, in the words of a list.
export function since(then: number, now: number): string {
  const seconds = Math.round((now - then) / 1000)
  const far = Math.abs(seconds)
  if (far < 10) return 'now'
  const [amount, unit] =
    far < 60
      ? [far, 's']
      : far < 3600
        ? [Math.floor(far / 60), 'min']
        : far < 86_400
          ? [Math.floor(far / 3600), 'h']
          : [Math.floor(far / 86_400), 'd']
  if (unit === 'd' && amount > 6)
    return new Date(then).toLocaleDateString(undefined, {
      day: 'numeric',
      month: 'short',
      year: amount > 300 ? 'numeric' : undefined,
    })
  return seconds > 0 ? `${amount} ${unit} ago` : `in ${amount} ${unit}`
}

// lasting formats a duration.
export function lasting(milliseconds: number): string {
  const ms = Math.max(0, milliseconds)
  if (ms < 950) return `${Math.round(ms)} ms`
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}
