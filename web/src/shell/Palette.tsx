import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Dialog } from 'radix-ui'
import { useDeferredValue, useEffect, useId, useMemo, useRef, useState } from 'react'
import { agentsQuery } from '../agents/queries'
import type { Me, Passage } from '../wire/native.generated'
import { hashOf } from './jump'
import { Marked } from './Marked'
import { usePassages } from './search'
import { titleOf, useSessions } from './sessions'
import { useAllShortcuts, written } from './shortcuts'
import { classes } from '../ui/classes'

interface Choice {
  id: string
  group: string
  name: string
  note?: string
  keys?: string
  passage?: Passage
  run: () => void
}

interface Action {
  name: string
  run: () => void
}

// The palette opens every page and runs every command from one field.
export function Palette({ me, actions, close }: { me: Me; actions: readonly Action[]; close: () => void }) {
  const [text, setText] = useState('')
  const wanted = useDeferredValue(text.trim())
  const [at, setAt] = useState(0)
  const list = useId()
  const chosen = useRef<HTMLLIElement>(null)
  const choices = useChoices(me, wanted, actions)
  const index = Math.min(at, choices.length - 1)
  useEffect(() => void chosen.current?.scrollIntoView({ block: 'nearest' }), [index]) // some browsers return a promise
  const run = (choice: Choice | undefined) => {
    if (choice === undefined) return
    close()
    choice.run()
  }
  return (
    <Dialog.Root open onOpenChange={(open) => !open && close()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Content
          aria-describedby={undefined}
          className={classes(
            'fixed top-[12vh] left-1/2 z-50 flex max-h-[70vh] w-[min(36rem,calc(100vw-2rem))]',
            '-translate-x-1/2 flex-col overflow-hidden rounded-lg border border-line bg-paper shadow-2xl',
          )}
        >
          <Dialog.Title className="sr-only">Command palette</Dialog.Title>
          <input
            role="combobox"
            aria-label="Search messages, conversations, agents, pages and actions"
            aria-expanded="true"
            aria-controls={list}
            aria-activedescendant={index >= 0 ? `${list}-${index}` : undefined}
            placeholder="Find a message, a conversation, an agent, a page…"
            className="border-b border-line bg-transparent px-4 py-3 outline-none placeholder:text-ink-soft"
            value={text}
            onChange={(e) => {
              setText(e.target.value)
              setAt(0)
            }}
            onKeyDown={(e) => {
              if (e.nativeEvent.isComposing) return
              if (e.key === 'Enter') run(choices[index])
              else if (e.key === 'ArrowDown') setAt(index + 1 < choices.length ? index + 1 : 0)
              else if (e.key === 'ArrowUp') setAt(index > 0 ? index - 1 : choices.length - 1)
              else return
              e.preventDefault()
            }}
          />
          <ul id={list} role="listbox" aria-label="Results" className="overflow-y-auto p-2">
            {choices.map((choice, i) => (
              <li
                key={choice.id}
                id={`${list}-${i}`}
                ref={i === index ? chosen : undefined}
                role="option"
                aria-selected={i === index}
                className={classes(
                  'flex cursor-pointer items-center gap-2 rounded px-2 py-1.5 text-sm max-md:min-h-11',
                  i === index ? 'bg-accent-soft' : '',
                )}
                onMouseMove={() => setAt(i)}
                onClick={() => run(choice)}
              >
                {choice.passage === undefined ? (
                  <bdi className="truncate">{choice.name}</bdi>
                ) : (
                  <span className="min-w-0">
                    <span className="line-clamp-2">
                      <Marked text={choice.passage.text} marks={choice.passage.marks} />
                    </span>
                    <span className="block truncate text-xs text-ink-soft">
                      <bdi>{choice.name}</bdi>
                    </span>
                  </span>
                )}
                {choice.note && <span className="truncate text-xs text-ink-soft">{choice.note}</span>}
                <span className="grow" />
                {choice.keys && <Keys keys={choice.keys} />}
                <span className="shrink-0 text-xs text-ink-soft">{choice.group}</span>
              </li>
            ))}
          </ul>
          {choices.length === 0 && (
            <p role="status" className="px-4 pb-4 text-sm text-ink-soft">
              No results.
            </p>
          )}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

export function Keys({ keys }: { keys: string }) {
  return (
    <span className="flex shrink-0 gap-1">
      {written(keys).map((key, i) => (
        <kbd key={i} className="rounded border border-line bg-sunken px-1.5 font-sans text-xs">
          {key}
        </kbd>
      ))}
    </span>
  )
}

function useChoices(me: Me, wanted: string, actions: readonly Action[]): Choice[] {
  const navigate = useNavigate()
  const shortcuts = useAllShortcuts()
  const sessions = useSessions(wanted, 20).data?.sessions
  const agents = useQuery(agentsQuery).data?.agents
  const { passages } = usePassages(wanted, 10)
  return useMemo(() => {
    const words = wanted.toLowerCase().split(/\s+/).filter(Boolean)
    const fits = (text: string) => words.every((word) => text.toLowerCase().includes(word))
    const pages = (
      [
        ['Agents', '/agents'],
        ['Approvals', '/approvals'],
        ['Runs', '/runs'],
        ['Files', '/files'],
        ['Settings', '/settings'],
      ] as const
    ).map(([name, to]): Choice => ({ id: to, group: 'Page', name, run: () => void navigate({ to }) }))
    const doable: Choice[] = actions.map((a) => ({ id: `action ${a.name}`, group: 'Action', ...a }))
    if (me.permissions.includes('agents:message'))
      doable.unshift({ id: 'new', group: 'Action', name: 'New conversation', run: () => void navigate({ to: '/' }) })
    for (const s of shortcuts) {
      const run = s.run
      if (run === undefined || s.group === 'Everywhere' || s.group === 'Conversations') continue
      doable.push({
        id: `key ${s.keys}`,
        group: s.group,
        name: s.what,
        keys: s.keys,
        run: () => run(new KeyboardEvent('keydown')),
      })
    }
    return [
      // Results of the previous search stay until new ones arrive: they must match, too.
      ...(sessions ?? [])
        .filter((s) => fits(titleOf(s)))
        .map((s): Choice => ({
          id: s.id,
          group: 'Conversation',
          name: titleOf(s),
          note: s.agent,
          run: () => void navigate({ to: '/chat/$session', params: { session: s.id } }),
        })),
      ...passages.map((passage): Choice => ({
        id: `message ${passage.session} ${passage.seq}`,
        group: 'Message',
        name: passage.title.trim() || 'Untitled conversation',
        passage,
        run: () =>
          void navigate({ to: '/chat/$session', params: { session: passage.session }, hash: hashOf(passage) }),
      })),
      ...(agents ?? [])
        .map((a): Choice => ({
          id: `agent ${a.id}`,
          group: 'Agent',
          name: a.name,
          note: a.status === 'running' ? undefined : a.status,
          run: () => void navigate({ to: '/agents/$id', params: { id: a.id } }),
        }))
        .filter((c) => fits(`${c.name} agent`)),
      ...[...pages, ...doable].filter((c) => fits(`${c.name} ${c.group}`)),
    ]
  }, [wanted, sessions, passages, agents, actions, shortcuts, me, navigate])
}
