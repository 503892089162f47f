// Text of a model. Terminal escapes and characters that reverse text are shown by name, as in Mono; characters that are
// usual in prose are left alone.

import type { ReactNode } from 'react'
import { proseParts } from '../model/prose'

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
