import { Dialog } from 'radix-ui'
import { IconButton } from '../ui/Button'
import { CrossIcon } from '../ui/icons'
import { Keys } from './Palette'
import { lettersOn, turnLetters, useAllShortcuts } from './shortcuts'
import { classes } from '../ui/classes'

// focusContent focuses the dialog, which scrolls with the keyboard, rather than the cross that closes it.
function focusContent(event: Event): void {
  event.preventDefault()
  ;(event.currentTarget as HTMLElement).focus()
}

// Help lists the keyboard shortcuts of this page and of all pages.
export function Help({ close }: { close: () => void }) {
  const all = useAllShortcuts()
  const groups = [...new Set(all.map((s) => s.group))]
  return (
    <Dialog.Root open onOpenChange={(open) => !open && close()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Content
          aria-describedby={undefined}
          onOpenAutoFocus={focusContent}
          className={classes(
            'fixed top-[10vh] left-1/2 z-50 max-h-[80vh] w-[min(36rem,calc(100vw-2rem))]',
            '-translate-x-1/2 overflow-y-auto rounded-lg border border-line bg-paper p-5 shadow-2xl outline-none',
          )}
        >
          <div className="mb-3 flex items-center justify-between">
            <Dialog.Title className="font-semibold">Keyboard shortcuts</Dialog.Title>
            <Dialog.Close asChild>
              <IconButton small label="Close">
                <CrossIcon />
              </IconButton>
            </Dialog.Close>
          </div>
          {groups.map((group) => (
            <section key={group} className="mb-4">
              <h3 className="mb-1 text-xs text-ink-soft">{group}</h3>
              <dl className="text-sm">
                {all
                  .filter((s) => s.group === group)
                  .map((s, i) => (
                    <div
                      key={i}
                      className="flex items-center justify-between gap-4 border-b border-line py-1.5 last:border-0"
                    >
                      <dt>{s.what}</dt>
                      <dd>
                        <Keys keys={s.keys} />
                      </dd>
                    </div>
                  ))}
              </dl>
            </section>
          ))}
          <label className="flex items-center gap-2 text-sm">
            <input type="checkbox" checked={lettersOn()} onChange={(e) => turnLetters(e.target.checked)} />
            Turn on single-key shortcuts
          </label>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
