import { Tooltip as Radix } from 'radix-ui'
import type { ReactNode } from 'react'

// Tooltip adds words to something that can be focused; it must make sense without.
export function Tooltip({ text, children }: { text: ReactNode; children: ReactNode }) {
  return (
    <Radix.Provider delayDuration={400}>
      <Radix.Root>
        <Radix.Trigger asChild>{children}</Radix.Trigger>
        <Radix.Portal>
          <Radix.Content
            sideOffset={4}
            collisionPadding={8}
            className="z-50 max-w-xs rounded bg-ink px-2 py-1 text-xs text-paper shadow"
          >
            {text}
          </Radix.Content>
        </Radix.Portal>
      </Radix.Root>
    </Radix.Provider>
  )
}
