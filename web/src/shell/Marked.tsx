import type { Mark } from '../wire/native.generated'
import { readable } from './passage'

// Marked shows a passage with its matches. Marks count characters, not UTF-16 units.
export function Marked(passage: { text: string; marks: readonly Mark[] }) {
  const { text, marks } = readable(passage.text, passage.marks)
  const characters = [...text]
  const parts: React.ReactNode[] = []
  let at = 0
  for (const { start, end } of marks) {
    if (start < at || end > characters.length) continue
    parts.push(characters.slice(at, start).join(''))
    parts.push(
      <mark key={start} className="rounded-xs bg-accent-soft font-medium text-ink">
        {characters.slice(start, end).join('')}
      </mark>,
    )
    at = end
  }
  parts.push(characters.slice(at).join(''))
  return <bdi>{parts}</bdi>
}
