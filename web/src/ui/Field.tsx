import { useId, type ComponentProps, type ReactNode } from 'react'
import { classes } from './classes'
import { ChevronDownIcon } from './icons'

const box =
  'rounded-md border border-line-strong bg-paper px-3 py-1.5 text-sm text-ink ' +
  'placeholder:text-ink-soft disabled:opacity-50'

export const input = 'w-full ' + box

// Field connects a label, a hint and an error text to the control inside it.
export function Field({
  label,
  hint,
  problem,
  children,
}: {
  label: string
  hint?: ReactNode
  problem?: string
  children: (control: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: true }) => ReactNode
}) {
  const id = useId()
  const said = hint !== undefined || problem !== undefined
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children({
        id,
        'aria-describedby': said ? id + '-hint' : undefined,
        'aria-invalid': problem === undefined ? undefined : true,
      })}
      {said && (
        <p id={id + '-hint'} className={classes('text-xs', problem === undefined ? 'text-ink-soft' : 'text-failed')}>
          {problem ?? hint}
        </p>
      )}
    </div>
  )
}

export function TextInput({ className, ...rest }: ComponentProps<'input'>) {
  return <input className={classes(input, 'min-h-9 max-md:min-h-11', className)} {...rest} />
}

export function TextArea({ className, ...rest }: ComponentProps<'textarea'>) {
  return <textarea className={classes(input, className)} {...rest} />
}

// Select has its own arrow: those of browsers differ in place and colour. className is for the box around both.
export function Select({ className, ...rest }: ComponentProps<'select'>) {
  return (
    <span className={classes('relative inline-flex max-w-full', className)}>
      <select className={classes(box, 'min-h-9 min-w-0 grow appearance-none pr-8 max-md:min-h-11')} {...rest} />
      <ChevronDownIcon className="pointer-events-none absolute top-1/2 right-2.5 -translate-y-1/2 text-ink-soft" />
    </span>
  )
}
