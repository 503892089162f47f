import { useEffect, useState, useSyncExternalStore } from 'react'
import { IconButton } from './Button'
import { classes } from './classes'
import { CheckIcon, CrossIcon, WarningIcon } from './icons'
import { current, dismiss, subscribe, type Toast } from './toast'

// Toaster is mounted once, in the shell. Its live region exists from the start, so that screen readers announce later
// toasts.
export function Toaster() {
  const toasts = useSyncExternalStore(subscribe, current)
  return (
    <div
      role="status"
      aria-live="polite"
      className={classes(
        'pointer-events-none fixed inset-x-4 bottom-4 z-50 flex',
        'flex-col items-center gap-2 sm:inset-x-auto sm:right-4 sm:items-end',
      )}
    >
      {toasts.map((toast) => (
        <Line key={toast.id} toast={toast} />
      ))}
    </div>
  )
}

// A toast stays while it has the pointer or the focus.
function Line({ toast }: { toast: Toast }) {
  const [held, setHeld] = useState(false)
  useEffect(() => {
    if (held) return
    const timer = setTimeout(() => dismiss(toast.id), toast.lasts)
    return () => clearTimeout(timer)
  }, [held, toast])
  const hold = () => setHeld(true)
  const release = () => setHeld(false)
  return (
    <div
      onMouseEnter={hold}
      onMouseLeave={release}
      onFocus={hold}
      onBlur={release}
      className={classes(
        'pointer-events-auto flex max-w-sm items-start gap-2 rounded-md border bg-paper px-3 py-2 text-sm shadow-lg',
        toast.tone === 'failed' ? 'border-failed' : 'border-line',
      )}
    >
      {toast.tone === 'failed' ? (
        <WarningIcon className="mt-1 shrink-0 text-failed" />
      ) : (
        toast.tone === 'done' && <CheckIcon className="mt-1 shrink-0 text-done" />
      )}
      <span className="grow break-words">{toast.text}</span>
      <IconButton small label="Dismiss" className="-my-1 -mr-1" onClick={() => dismiss(toast.id)}>
        <CrossIcon />
      </IconButton>
    </div>
  )
}
