import { DropdownMenu as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { classes } from './classes'

interface MenuProps {
  children: ReactNode // the button that opens it
  items: ReactNode // MenuItem, MenuLine
  align?: 'start' | 'end'
  onOpenChange?: (open: boolean) => void
}

export function Menu({ children, items, align = 'end', onOpenChange }: MenuProps) {
  // A modal menu would hide the page from screen readers, with its links and buttons still in the tab order.
  return (
    <Radix.Root modal={false} onOpenChange={onOpenChange}>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align={align}
          sideOffset={4}
          collisionPadding={8}
          className="z-50 min-w-44 rounded-md border border-line bg-paper p-1 shadow-lg"
        >
          {items}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

interface MenuItemProps {
  onSelect: () => void
  danger?: boolean
  disabled?: boolean
  hint?: string // a shortcut, or the effect
  children: ReactNode
}

export function MenuItem({ onSelect, danger, disabled, hint, children }: MenuItemProps) {
  return (
    <Radix.Item
      onSelect={onSelect}
      disabled={disabled}
      className={classes(
        'flex min-h-8 cursor-pointer items-center gap-2 rounded px-2 text-sm outline-none max-md:min-h-11',
        'data-[disabled]:cursor-not-allowed data-[highlighted]:bg-sunken data-[disabled]:opacity-50',
        danger && 'text-failed',
      )}
    >
      <span className="flex grow items-center gap-2">{children}</span>
      {hint !== undefined && <span className="text-xs text-ink-soft">{hint}</span>}
    </Radix.Item>
  )
}

export function MenuLine() {
  return <Radix.Separator className="my-1 h-px bg-line" />
}
