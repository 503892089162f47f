import { useId, useState, type ReactNode } from 'react'
import { classes } from '../../ui/classes'
import { ChevronRightIcon } from '../../ui/icons'

interface FoldProps {
  head: ReactNode // a summary of the content
  children: ReactNode | (() => ReactNode)
  open?: boolean // until the user opens or closes it
  className?: string
}

// Fold shows a one-line summary, and its content when unfolded. After the user has opened or closed it, it stays so,
// even if its content changes.
export function Fold({ head, children, open = false, className }: FoldProps) {
  const id = useId()
  const [chosen, setChosen] = useState<boolean | null>(null)
  const shown = chosen ?? open
  return (
    <div className={className}>
      <button
        type="button"
        aria-expanded={shown}
        aria-controls={shown ? id : undefined}
        onClick={() => setChosen(!shown)}
        className={classes(
          '-mx-1.5 flex min-h-7 w-[calc(100%+0.75rem)] items-center gap-1.5 max-md:min-h-11',
          'rounded-md px-1.5 text-left text-sm text-ink-soft hover:bg-sunken hover:text-ink',
        )}
      >
        <ChevronRightIcon className={classes('shrink-0 text-xs transition-transform', shown && 'rotate-90')} />
        {head}
      </button>
      {shown && <div id={id}>{typeof children === 'function' ? children() : children}</div>}
    </div>
  )
}
