// What a model wrote, for reading. Characters that steer a terminal or turn text
// round are shown by name, as in Mono; what people use in prose is left alone.

import type { ReactNode } from 'react'
import { visible, type Part } from '../ui/visible'

// Joiners and variations belong to emoji and to many scripts.
const used = /^[\u200c\u200d\ufe00-\ufe0f\u00ad]$/

export function proseParts(text: string): Part[] {
  return visible(text).map((part) => {
    const harmless =
      part.trick === 'space' || part.trick === 'lookalike' || (part.trick === 'invisible' && used.test(part.text))
    return harmless ? { text: part.text, shown: part.text } : part
  })
}

export function isPlain(text: string): boolean {
  return proseParts(text).every((part) => part.trick === undefined)
}

export function Prose({ children }: { children: string }): ReactNode {
  const parts = proseParts(children)
  if (parts.every((part) => part.trick === undefined)) return children
  return parts.map((part, at) =>
    part.trick === undefined ? (
      part.shown
    ) : (
      <mark
        key={at}
        title={part.name}
        data-trick={part.trick}
        className="rounded-sm bg-waiting-soft font-mono text-waiting underline decoration-dotted underline-offset-2"
      >
        {part.shown}
      </mark>
    ),
  )
}
