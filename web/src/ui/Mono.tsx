import { useMemo } from 'react'
import { classes } from './classes'
import { visible } from './visible'

interface MonoProps {
  children: string
  // block keeps line breaks, in its own scrolling box; otherwise it is a word in a line.
  block?: boolean
  bare?: boolean // without its own background, in the size of the text around it
  quoted?: boolean // the server has quoted it: its escapes are marked
  className?: string
}

// Exact is a text with its deceptive characters shown, in any typeface.
export function Exact({ children, quoted }: { children: string; quoted?: boolean }) {
  return useMemo(() => visible(children, quoted), [children, quoted]).map((part, at) =>
    part.trick === undefined ? (
      part.shown
    ) : (
      <mark
        key={at}
        title={part.name}
        data-trick={part.trick}
        className="rounded-sm bg-waiting-soft text-waiting underline decoration-dotted underline-offset-2"
      >
        {part.shown}
      </mark>
    ),
  )
}

// Mono shows exactly the output or the input of a machine. Invisible characters are shown by their number and have no
// effect.
export function Mono({ children, block, bare, quoted, className }: MonoProps) {
  const inner = <Exact quoted={quoted}>{children}</Exact>
  // dir and isolation: the content cannot change the direction of the text around it
  if (block)
    return (
      <pre
        dir="ltr"
        tabIndex={0}
        className={classes(
          'overflow-auto whitespace-pre-wrap break-words rounded-md bg-sunken px-3',
          'py-2 font-mono text-sm [overflow-wrap:anywhere] [unicode-bidi:isolate]',
          className,
        )}
      >
        {inner}
      </pre>
    )
  return (
    <code
      dir="ltr"
      className={classes(
        'whitespace-pre-wrap break-words font-mono [overflow-wrap:anywhere] [unicode-bidi:isolate]',
        !bare && 'rounded bg-sunken px-1 text-[0.9em]',
        className,
      )}
    >
      {inner}
    </code>
  )
}
