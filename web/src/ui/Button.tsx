import type { ComponentProps, ReactNode } from 'react'
import { classes } from './classes'

// primary: the main action; plain: the others; quiet: in rows and bars; danger:
// cannot be undone.
type ButtonKind = 'primary' | 'plain' | 'quiet' | 'danger'

const kinds: Record<ButtonKind, string> = {
  primary: 'border border-accent bg-accent text-accent-ink hover:opacity-90',
  plain: 'border border-line-strong bg-paper text-ink hover:bg-sunken',
  quiet: 'border border-transparent text-ink-soft hover:bg-sunken hover:text-ink',
  danger: 'border border-failed bg-paper text-failed hover:bg-failed-soft',
}

const common =
  'inline-flex shrink-0 items-center justify-center gap-1.5 rounded-md font-medium transition-colors ' +
  'disabled:cursor-not-allowed disabled:opacity-50 aria-disabled:opacity-60'

// thumb: on a phone, every control is at least 44 pixels high and wide.
export const thumb = 'max-md:min-h-11 max-md:min-w-11'

// buttonLook is the look of a link that stands where a button would.
export function buttonLook(kind: ButtonKind = 'plain'): string {
  return classes(common, kinds[kind], 'min-h-9 px-3 text-sm', thumb)
}

interface ButtonProps extends ComponentProps<'button'> {
  kind?: ButtonKind
  small?: boolean
  // busy keeps the button in place and shows that it works; it cannot be pressed twice.
  busy?: boolean
}

export function Button({
  kind = 'plain',
  small,
  busy,
  className,
  disabled,
  type = 'button',
  children,
  ...rest
}: ButtonProps) {
  return (
    <button
      type={type}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      className={classes(common, kinds[kind], small ? 'min-h-7 px-2 text-xs' : 'min-h-9 px-3 text-sm', thumb, className)}
      {...rest}
    >
      {children}
    </button>
  )
}

interface IconButtonProps extends Omit<ComponentProps<'button'>, 'aria-label' | 'children'> {
  label: string // the action in words: read out, and shown on hover
  kind?: ButtonKind
  small?: boolean
  children: ReactNode
}

export function IconButton({
  label,
  kind = 'quiet',
  small,
  className,
  type = 'button',
  children,
  ...rest
}: IconButtonProps) {
  return (
    <button
      type={type}
      aria-label={label}
      title={label}
      className={classes(common, kinds[kind], small ? 'size-7 text-sm' : 'size-9 text-base', thumb, className)}
      {...rest}
    >
      {children}
    </button>
  )
}
