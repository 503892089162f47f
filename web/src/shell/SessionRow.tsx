import { Link, useNavigate } from '@tanstack/react-router'
import { DropdownMenu } from 'radix-ui'
import { memo, useRef, useState } from 'react'
import type { Session } from '../wire/native.generated'
import { DeleteConversation } from './DeleteConversation'
import { DotsIcon, PinIcon } from '../ui/icons'
import { Exact } from '../ui/Mono'
import { RelativeTime } from '../ui/RelativeTime'
import { toast } from '../ui/toast'
import { titleOf, useDelete, useMark, useRename } from './sessions'
import { StatusDot } from './Status'
import { classes } from '../ui/classes'

interface Props {
  session: Session
  current: boolean
  editable: boolean // the user may rename and delete it
  planWaits: boolean
}

type Doing = 'nothing' | 'renaming' | 'deleting'

// SessionRow is rendered while the list scrolls, so its menu is only made when it is opened.
export const SessionRow = memo(function SessionRow({ session, current, editable, planWaits }: Props) {
  const [doing, setDoing] = useState<Doing>('nothing')
  const row = useRef<HTMLDivElement>(null)
  const title = titleOf(session)
  const unread = session.unread === true && !current
  const done = () => {
    setDoing('nothing')
    row.current?.querySelector<HTMLElement>('[aria-haspopup]')?.focus()
  }
  if (doing === 'renaming') return <Renaming session={session} done={done} />
  return (
    <div
      ref={row}
      className={classes(
        'group relative flex items-center rounded',
        current ? 'bg-accent-soft' : 'hover:bg-sunken focus-within:bg-sunken',
      )}
    >
      <Link
        to="/chat/$session"
        params={{ session: session.id }}
        aria-current={current ? 'page' : undefined}
        className="flex min-w-0 grow items-center gap-1.5 rounded py-1.5 pl-1.5 text-sm max-md:min-h-11"
      >
        <StatusDot status={session.status === 'idle' && planWaits ? 'waiting' : session.status} />
        <bdi className={classes('truncate', unread ? 'font-semibold' : '')}>
          <Exact>{title}</Exact>
        </bdi>
        {unread && (
          <span className="shrink-0" title="New since you last looked">
            <span aria-hidden="true" className="block size-1.5 rounded-full bg-ink" />
            <span className="sr-only">unread</span>
          </span>
        )}
        {session.pinned && (
          <span className="shrink-0 text-ink-soft" title="Pinned">
            <PinIcon className="size-3" />
            <span className="sr-only">pinned</span>
          </span>
        )}
      </Link>
      <RelativeTime
        at={session.updated_at}
        short
        className={classes(
          'mr-11 shrink-0 pl-1 text-xs whitespace-nowrap text-ink-soft',
          'md:pointer-fine:mr-1.5 md:pointer-fine:group-focus-within:opacity-0 md:pointer-fine:group-hover:opacity-0',
        )}
      />
      <RowMenu session={session} editable={editable} doing={doing} onDo={setDoing} />
      {doing === 'deleting' && <Deleting session={session} current={current} done={done} />}
    </div>
  )
})

const dots = classes(
  'absolute right-1 flex items-center justify-center rounded p-1 text-ink-soft hover:text-ink',
  'max-md:right-0 max-md:size-11',
  'focus-visible:opacity-100 data-[state=open]:opacity-100',
  'md:pointer-fine:opacity-0 md:pointer-fine:group-hover:opacity-100',
)

interface RowMenuProps {
  session: Session
  editable: boolean
  doing: Doing
  onDo: (what: Doing) => void
}

function RowMenu(props: RowMenuProps) {
  const [made, setMade] = useState(false)
  if (made) return <OpenedMenu {...props} />
  return (
    <button
      type="button"
      aria-haspopup="menu"
      aria-expanded={false}
      aria-label={`Actions for ${titleOf(props.session)}`}
      className={dots}
      onClick={() => setMade(true)}
      onKeyDown={(event) => event.key === 'ArrowDown' && setMade(true)}
    >
      <DotsIcon className="size-4 shrink-0" />
    </button>
  )
}

// OpenedMenu opens when it is first rendered, and stays mounted after it was closed.
function OpenedMenu({ session, editable, doing, onDo }: RowMenuProps) {
  const mark = useMark()
  const noted = (marks: { pinned?: boolean; archived?: boolean }, said: string) =>
    mark.mutate(
      { id: session.id, ...marks },
      {
        onSuccess: () => toast(said),
        onError: (error) => toast(`The conversation was not changed: ${error.message}`, 'failed'),
      },
    )
  return (
    <DropdownMenu.Root defaultOpen modal={false}>
      <DropdownMenu.Trigger aria-label={`Actions for ${titleOf(session)}`} className={dots}>
        <DotsIcon className="size-4 shrink-0" />
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align="start"
          className="z-50 min-w-36 rounded border border-line bg-raised p-1 text-sm shadow-lg"
          onCloseAutoFocus={(e) => doing !== 'nothing' && e.preventDefault()}
        >
          <Item
            name={session.pinned ? 'Unpin' : 'Pin'}
            run={() =>
              noted({ pinned: !session.pinned }, session.pinned ? 'Unpinned.' : 'Pinned to the top of the list.')
            }
          />
          <Item
            name={session.archived ? 'Move out of the archive' : 'Archive'}
            run={() =>
              noted(
                { archived: !session.archived },
                session.archived ? 'Moved out of the archive.' : 'Archived. Find it under Archive below the list.',
              )
            }
          />
          {editable && <Item name="Rename" run={() => onDo('renaming')} />}
          {editable && <Item name="Delete…" danger run={() => onDo('deleting')} />}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}

function Item({ name, run, danger }: { name: string; run: () => void; danger?: boolean }) {
  return (
    <DropdownMenu.Item
      className={classes(
        'flex items-center rounded px-2 py-1.5 outline-none data-highlighted:bg-sunken max-md:min-h-11',
        danger ? 'text-failed' : '',
      )}
      onSelect={run}
    >
      {name}
    </DropdownMenu.Item>
  )
}

function Renaming({ session, done }: { session: Session; done: () => void }) {
  const rename = useRename()
  const [title, setTitle] = useState(session.title)
  const save = () => {
    if (title.trim() === '' || title === session.title) return done()
    rename.mutate({ id: session.id, title: title.trim() }, { onSuccess: done })
  }
  return (
    <div className="p-1">
      <input
        autoFocus
        aria-label="New name"
        aria-invalid={rename.isError}
        className="w-full rounded border border-line-strong bg-paper px-2 py-1 text-sm"
        value={title}
        maxLength={200}
        onChange={(e) => setTitle(e.target.value)}
        onFocus={(e) => e.target.select()}
        onBlur={() => !rename.isPending && !rename.isError && save()}
        onKeyDown={(e) => {
          if (e.key === 'Enter' && !e.nativeEvent.isComposing) save()
          if (e.key === 'Escape') done()
        }}
      />
      {rename.isError && (
        <p role="alert" className="mt-1 text-xs text-failed">
          The conversation was not renamed: {rename.error.message} Press Enter to try again, or Escape to cancel.
        </p>
      )}
    </div>
  )
}

function Deleting({ session, current, done }: { session: Session; current: boolean; done: () => void }) {
  const remove = useDelete()
  const navigate = useNavigate()
  // Leave the page of a deleted conversation first: it would get "not found".
  const confirm = async () => {
    if (current) await navigate({ to: '/' })
    await remove.mutateAsync(session.id)
  }
  return <DeleteConversation title={titleOf(session)} act={confirm} onClose={done} />
}
