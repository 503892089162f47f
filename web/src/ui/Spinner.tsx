import { classes } from './classes'

// Spinner always has a text that names the current work.
export function Spinner({ word, className }: { word: string; className?: string }) {
  return (
    <span role="status" className={classes('inline-flex items-center gap-2 text-sm text-ink-soft', className)}>
      <span
        aria-hidden="true"
        className="size-3.5 shrink-0 animate-spin rounded-full border-2 border-line-strong border-t-transparent"
      />
      {word}
    </span>
  )
}
