import { Dialog as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { IconButton } from './Button'
import { classes } from './classes'
import { CrossIcon } from './icons'

interface DialogProps {
  open: boolean
  onOpenChange: (open: boolean) => void
  title: string
  // read out by screen readers when the dialog opens
  description?: ReactNode
  wide?: boolean
  alert?: boolean // it asks before an action that cannot be undone
  children?: ReactNode
  // the buttons, with the main action last
  actions?: ReactNode
}

// focusFirst focuses the first field or button of a dialog, rather than the cross that closes it.
function focusFirst(event: Event): void {
  const content = event.currentTarget as HTMLElement
  const first = content.querySelector<HTMLElement>(
    '[data-dialog-body] :is(input, textarea, select, button, a[href]):not(:disabled), footer button:not(:disabled)',
  )
  if (first === null) return
  event.preventDefault()
  first.focus()
}

// Dialog keeps the focus inside while it is open and returns it afterwards.
export function Dialog({ open, onOpenChange, title, description, wide, alert, children, actions }: DialogProps) {
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Radix.Content
          {...(description === undefined && { 'aria-describedby': undefined })}
          {...(alert === true && { role: 'alertdialog' })}
          onOpenAutoFocus={focusFirst}
          className={classes(
            'fixed left-1/2 top-1/2 z-50 flex max-h-[85dvh] w-[calc(100vw-2rem)] -translate-x-1/2 ' +
              '-translate-y-1/2 flex-col rounded-lg border border-line bg-paper shadow-xl',
            wide ? 'max-w-4xl' : 'max-w-md',
          )}
        >
          <header className="flex items-start gap-2 px-5 pt-4">
            <Radix.Title className="grow text-base font-semibold">{title}</Radix.Title>
            <Radix.Close asChild>
              <IconButton label="Close" small>
                <CrossIcon />
              </IconButton>
            </Radix.Close>
          </header>
          <div data-dialog-body className="grow overflow-y-auto px-5 pb-4">
            {description !== undefined && (
              <Radix.Description asChild>
                <div className="mt-1 text-sm text-ink-soft">{description}</div>
              </Radix.Description>
            )}
            {children}
          </div>
          {actions !== undefined && (
            <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-5 py-3">{actions}</footer>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
