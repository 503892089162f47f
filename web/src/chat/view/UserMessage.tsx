import { Link } from '@tanstack/react-router'
import { memo, useMemo, useState } from 'react'
import { Button, IconButton, thumb } from '../../ui/Button'
import { classes } from '../../ui/classes'
import { CopyButton } from '../../ui/CopyButton'
import { TextArea } from '../../ui/Field'
import { ChevronLeftIcon, ChevronRightIcon, LinkIcon, PencilIcon } from '../../ui/icons'
import type { ChatMessage } from '../model/message'
import { anchorOf } from '../model/anchor'
import { filesOf } from '../model/files'
import { useChat } from './chatContext'
import { Exact } from '../../ui/Mono'
import { Fold } from './Fold'
import { InputImage } from './InputImage'
import { Prose } from './Prose'
import type { Branches } from './useForks'

const long = 4000

export const UserMessage = memo(function UserMessage({ message }: { message: ChatMessage }) {
  const { forks, mayMessage, link } = useChat()
  const [editing, setEditing] = useState(false)
  const { text, files } = useMemo(() => filesOf(message.text), [message.text])
  const branches = forks?.branchesAt(message)
  const own = message.inputId !== undefined && message.from !== 'parent'
  return (
    <article
      aria-label={message.from === 'parent' ? 'The parent agent said' : 'You said'}
      className="group/message flex flex-col items-end gap-1.5"
    >
      {message.from === 'parent' && <p className="text-xs text-ink-soft">from the parent agent</p>}
      {message.images !== undefined && (
        <div className="flex flex-wrap justify-end gap-2">
          {message.images.map((image, at) => (
            <InputImage key={image} source={image} name={`Image ${at + 1}`} />
          ))}
        </div>
      )}
      {editing ? (
        <Editing message={message} onClose={() => setEditing(false)} />
      ) : (
        <div
          className="max-w-[85%] rounded-2xl rounded-br-md bg-sunken px-4 py-2 break-words whitespace-pre-wrap"
          title={message.timestampMs === undefined ? undefined : new Date(message.timestampMs).toLocaleString()}
        >
          {text.length <= long ? (
            <Prose>{text}</Prose>
          ) : (
            <>
              <Prose>{text.slice(0, long)}</Prose>
              <Fold head={`${text.length - long} more characters`}>
                <Prose>{text.slice(long)}</Prose>
              </Fold>
            </>
          )}
        </div>
      )}
      {!editing &&
        files.map((file, at) => (
          <Fold
            key={`${at} ${file.name}`}
            className="max-w-[85%] rounded-lg border border-line px-3 py-0.5"
            head={
              <span className="font-mono">
                <Exact>{file.name}</Exact>
              </span>
            }
          >
            <pre className="max-h-80 overflow-auto py-2 font-mono text-sm">
              <Exact>{file.text}</Exact>
            </pre>
          </Fold>
        ))}
      {!editing && (
        <footer className="-mt-0.5 -mb-4 flex h-6 items-center gap-1 text-xs text-ink-soft max-md:h-auto">
          {own && (
            <span
              className={classes(
                'flex items-center opacity-0 transition-opacity group-focus-within/message:opacity-100',
                'group-hover/message:opacity-100 max-md:opacity-100 pointer-coarse:opacity-100',
              )}
            >
              <CopyButton text={message.text} label="Copy message" />
              {link !== undefined && anchorOf(message) !== undefined && (
                <IconButton small label="Copy the link to this message" onClick={() => link(message)}>
                  <LinkIcon />
                </IconButton>
              )}
              {forks !== undefined && mayMessage && (
                <IconButton small label="Edit and send again" onClick={() => setEditing(true)}>
                  <PencilIcon />
                </IconButton>
              )}
            </span>
          )}
          {branches !== undefined && <BranchSwitch branches={branches} />}
        </footer>
      )}
    </article>
  )
})

// Editing replaces the text of a message, in a branch of the conversation.
function Editing({ message, onClose }: { message: ChatMessage; onClose: () => void }) {
  const { forks } = useChat()
  const [text, setText] = useState(message.text)
  const [busy, setBusy] = useState(false)
  const send = async () => {
    setBusy(true)
    await forks?.resend(message, text.trim())
    setBusy(false)
  }
  return (
    <div className="flex w-full flex-col gap-2 rounded-2xl bg-sunken p-3">
      <TextArea
        autoFocus
        aria-label="Edit the message"
        rows={Math.min(12, text.split('\n').length + 1)}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return
          event.stopPropagation()
          onClose()
        }}
      />
      <div className="flex flex-wrap items-center justify-end gap-2">
        <span className="mr-auto text-xs text-ink-soft">A new branch. This conversation stays as it is.</span>
        <Button small onClick={onClose}>
          Cancel
        </Button>
        <Button small kind="primary" busy={busy} disabled={busy || text.trim() === ''} onClick={() => void send()}>
          Send
        </Button>
      </div>
    </div>
  )
}

// BranchSwitch switches between the branches at this message.
function BranchSwitch({ branches: { sessions, current } }: { branches: Branches }) {
  const words = `${current + 1} of ${sessions.length}`
  return (
    <nav aria-label={`Branch ${words}`} className="flex items-center">
      <Step to={sessions[current - 1]} label="Previous branch">
        <ChevronLeftIcon />
      </Step>
      <span className="tabular-nums">{words}</span>
      <Step to={sessions[current + 1]} label="Next branch">
        <ChevronRightIcon />
      </Step>
    </nav>
  )
}

function Step({ to, label, children }: { to?: string; label: string; children: React.ReactNode }) {
  const look = classes('flex size-6 items-center justify-center rounded', thumb)
  if (to === undefined)
    return (
      <span aria-hidden="true" className={classes(look, 'opacity-40')}>
        {children}
      </span>
    )
  return (
    <Link
      to="/chat/$session"
      params={{ session: to }}
      aria-label={label}
      className={classes(look, 'hover:bg-sunken hover:text-ink')}
    >
      {children}
    </Link>
  )
}
