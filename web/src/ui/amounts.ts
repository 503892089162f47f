// short writes a large number in a few characters: 12.3k, 1.5M.
export function short(count: number): string {
  if (count < 1000) return String(count)
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 100_000 ? 1 : 0).replace(/\.0$/, '')}k`
  return `${(count / 1_000_000).toFixed(1).replace(/\.0$/, '')}M`
}

// dollars formats millionths of a dollar. A cost above zero is never shown as zero.
export function dollars(micros: number): string {
  if (micros <= 0) return '$0'
  if (micros < 100) return '< $0.0001'
  return micros < 10_000 ? `$${(micros / 1e6).toFixed(4)}` : `$${(micros / 1e6).toFixed(2)}`
}
