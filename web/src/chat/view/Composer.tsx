import {
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  type ReactNode,
} from 'react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { fileQuery, folderQuery } from '../../files/queries'
import { ask, Problem } from '../../wire/api'
import type { Started } from '../../wire/bus.generated'
import { Button, IconButton } from '../../ui/Button'
import { classes } from '../../ui/classes'
import { ErrorState, why } from '../../ui/ErrorState'
import { PlusIcon, SendIcon, StopIcon } from '../../ui/icons'
import { commands, meaning, mentioned, suggest, suggestFiles, type Suggestion } from '../model/commands'
import { Dialog } from '../../ui/Dialog'
import { writeDraft } from '../model/draft'
import { attach, noAttachments, withFiles } from '../model/files'
import { useAttachments, useDraft } from './useDraft'
import { ChosenFiles } from './ChosenFiles'
import { AgentPicker } from './AgentPicker'
import { ModelPicker } from './ModelPicker'
import type { Card } from '../model/message'
import { answerCard } from './answerCard'
import { useAgents, useSkills } from './queries'
import { newID } from '../../wire/uuid'

interface ComposerProps {
  session?: string // none: the first message opens one
  project?: string // the project whose files can be mentioned, and of a new conversation; none: the first
  agent?: string // the agent that answers by default
  running?: boolean
  said?: string[] // earlier messages, the latest last
  meter?: ReactNode
  focus?: boolean
  question?: Card // an open question: the typed text is its answer
  onSent: (answer: Started) => void
  onStop?: () => Promise<void>
  onClear?: () => void
  onCompact?: () => void
}

// Composer is the field for a new message. The text stays until the server has accepted it.
export function Composer({
  session,
  project,
  agent,
  running = false,
  said = [],
  meter,
  focus,
  question,
  onSent,
  onStop,
  onClear,
  onCompact,
}: ComposerProps) {
  const [draft, setDraft] = useDraft(session ?? 'new')
  const [attachments, setAttachments] = useAttachments(session ?? 'new')
  const { pictures, files: texts } = attachments
  const current = useRef(attachments) // a file may come while the next one is being read
  current.current = attachments
  const [problems, setProblems] = useState<string[]>([])
  const [sending, setSending] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)
  const [help, setHelp] = useState(false)
  const [dropping, setDropping] = useState(false)
  const [active, setActive] = useState(0)
  const [dismissed, setDismissed] = useState('')
  const back = useRef({ at: 0, draft: '' }) // position in the earlier messages
  const key = useRef({ of: '', id: '' }) // a message that is sent again must have one effect
  const area = useRef<HTMLTextAreaElement>(null)
  const files = useRef<HTMLInputElement>(null)
  const { data: agents = [] } = useAgents(project)
  const { data: skills = [] } = useSkills(project)
  const queries = useQueryClient()
  const listId = useId()

  const text = draft.text
  const setText = (next: string) => setDraft({ ...draft, text: next })
  const mention = mentioned(text)
  const folder = useQuery({ ...folderQuery(project ?? '', mention?.folder ?? ''), enabled: mention !== undefined })
  const suggestions =
    dismissed === text
      ? []
      : [...suggest(text, skills, agents), ...(mention === undefined ? [] : suggestFiles(mention, folder.data ?? []))]
  const chosen = Math.min(active, suggestions.length - 1)
  // An agent that was chosen for another project is not there in this one.
  const gone = agents.length > 0 && !agents.some(({ id }) => id === draft.agent)
  const who = gone ? agent : (draft.agent ?? agent)
  const empty = text.trim() === ''
  const answers = question !== undefined && question.questions.length === 1

  useLayoutEffect(() => {
    const element = area.current
    if (element === null) return
    element.style.height = 'auto'
    element.style.height = `${Math.min(element.scrollHeight, window.innerHeight * 0.4)}px`
  }, [text])
  useEffect(() => {
    // A menu, a dialog or a field that was used while the conversation loaded keeps the focus: a menu without it closes.
    const used = document.activeElement?.closest('[role="menu"], [role="dialog"], input') != null
    // On a touch screen, focus would open a keyboard over half of the page.
    if (focus && !used && matchMedia('(pointer: fine)').matches) area.current?.focus()
  }, [focus])

  const add = async (list: File[]) => {
    if (list.length === 0) return
    const { attachments: next, problems: rejected } = await attach(current.current, list)
    setAttachments(next)
    setProblems(rejected)
  }

  const send = async () => {
    const meant = meaning(text)
    if (sending || (meant.do === 'say' && meant.message === '')) return
    setFailure(null)
    if (meant.do !== 'say') {
      setText('')
      return meant.do === 'help' ? setHelp(true) : meant.do === 'clear' ? onClear?.() : onCompact?.()
    }
    if (answers) {
      setSending(true)
      try {
        await answerCard(question!.question_id, [{ selected: [], custom_text: meant.message }])
        setText('')
      } catch (error) {
        setFailure(error)
      }
      setSending(false)
      area.current?.focus()
      return
    }
    const body = {
      message: withFiles(meant.message, texts),
      session_id: session,
      project_root: session === undefined ? project : undefined,
      agent_id: who,
      mode: meant.mode,
      model: draft.model,
      images: pictures.length > 0 ? pictures.map((p) => p.url) : undefined,
    }
    const same = JSON.stringify([
      body.message,
      body.session_id,
      body.agent_id,
      body.mode,
      body.model,
      project,
      pictures.length,
    ])
    if (key.current.of !== same) key.current = { of: same, id: newID() }
    setSending(true)
    try {
      const answer = await ask<Started>('POST', '/api/chat', { body, once: key.current.id })
      key.current = { of: '', id: '' }
      back.current = { at: 0, draft: '' }
      setDraft({ ...draft, text: '' })
      if (session === undefined && draft.model !== undefined)
        writeDraft(answer.session_id, { text: '', model: draft.model })
      setAttachments(noAttachments)
      setProblems([])
      onSent(answer)
    } catch (error) {
      setFailure(error)
    }
    setSending(false)
    area.current?.focus()
  }

  // The server reads the file now, by the rules of the files page: the message keeps this content.
  const mentionFile = async (path: string) => {
    try {
      const content = await queries.fetchQuery({ ...fileQuery(project ?? '', path), retry: false })
      await add([new File([content], path)])
    } catch (error) {
      setProblems([`${path} was not attached. ${why(error)}`])
    }
  }

  const pick = (suggestion: Suggestion) => {
    setText(suggestion.insert)
    setActive(0)
    area.current?.focus()
    if (suggestion.file !== undefined) void mentionFile(suggestion.file)
  }

  const goBack = (by: 1 | -1): boolean => {
    const element = area.current
    if (element === null || said.length === 0) return false
    const { at } = back.current
    if (at === 0 && (by < 0 || text !== '')) return false
    if (at > 0 && text !== said[said.length - at]) return false // the text was edited: the keys move the caret
    const next = Math.min(Math.max(at + by, 0), said.length)
    if (at === 0) back.current.draft = text
    back.current.at = next
    setText(next === 0 ? back.current.draft : said[said.length - next]!)
    return true
  }

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return
    if (suggestions.length > 0) {
      const { insert, file } = suggestions[chosen]!
      const exact = file === undefined && insert.trim() === text.trim()
      if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
        setActive((chosen + (event.key === 'ArrowDown' ? 1 : suggestions.length - 1)) % suggestions.length)
        return event.preventDefault()
      }
      if (event.key === 'Tab' || (event.key === 'Enter' && !exact)) {
        pick(suggestions[chosen]!)
        return event.preventDefault()
      }
      if (event.key === 'Escape') {
        setDismissed(text)
        event.stopPropagation()
        return event.preventDefault()
      }
    }
    if (event.key === 'Escape') area.current?.blur() // single keys are shortcuts from here on
    else if (event.key === 'Enter' && !event.shiftKey && !event.altKey) {
      event.preventDefault()
      void send()
    } else if ((event.key === 'ArrowUp' && goBack(1)) || (event.key === 'ArrowDown' && goBack(-1)))
      event.preventDefault()
  }

  const onPaste = (event: ClipboardEvent) => {
    const pasted = [...event.clipboardData.files]
    if (pasted.length === 0) return
    event.preventDefault()
    void add(pasted)
  }
  const onDrop = (event: DragEvent) => {
    setDropping(false)
    if (event.dataTransfer.files.length === 0) return
    event.preventDefault()
    void add([...event.dataTransfer.files])
  }

  return (
    <div className="@container mx-auto w-full max-w-[46rem] px-4 pb-3 sm:px-6">
      {failure !== null && (
        <ErrorState
          className="mb-2"
          what="Your message was not sent. It is still here."
          error={failure}
          retry={failure instanceof Problem && !failure.again ? undefined : () => void send()}
        />
      )}
      {question !== undefined && !answers && (
        <p className="mb-2 text-sm text-ink-soft">
          Several questions wait for your answers above. The agent reads a message from here after them.
        </p>
      )}
      {problems.length > 0 && (
        <p role="alert" className="mb-2 text-sm text-failed">
          {problems.join(' ')}
        </p>
      )}
      <div
        onDragOver={(event) => {
          if (!event.dataTransfer.types.includes('Files')) return
          event.preventDefault()
          setDropping(true)
        }}
        onDragLeave={() => setDropping(false)}
        onDrop={onDrop}
        className={classes(
          'relative rounded-xl border bg-paper shadow-sm transition-colors focus-within:border-accent',
          dropping ? 'border-accent bg-accent-soft' : 'border-line-strong',
        )}
      >
        {suggestions.length > 0 && (
          <ul
            id={listId}
            role="listbox"
            aria-label="Suggestions"
            className={classes(
              'absolute right-0 bottom-full left-0 z-20 mb-2 max-h-72',
              'overflow-y-auto rounded-lg border border-line bg-paper p-1 shadow-lg',
            )}
          >
            {suggestions.map((suggestion, at) => (
              <li
                key={suggestion.name}
                id={`${listId}-${at}`}
                role="option"
                aria-selected={at === chosen}
                onMouseDown={(event) => {
                  event.preventDefault()
                  pick(suggestion)
                }}
                className={classes(
                  'flex cursor-pointer items-baseline gap-3 rounded-md px-3 py-1.5 text-sm max-md:py-3',
                  at === chosen && 'bg-sunken',
                )}
              >
                <span className="shrink-0 font-mono">{suggestion.name}</span>
                <span className="min-w-0 truncate text-ink-soft">{suggestion.about}</span>
              </li>
            ))}
          </ul>
        )}
        <ChosenFiles attachments={attachments} onChange={setAttachments} />
        <textarea
          ref={area}
          data-composer
          rows={1}
          value={text}
          aria-label={`Message ${who ?? 'the agent'}`}
          aria-controls={suggestions.length > 0 ? listId : undefined}
          aria-activedescendant={suggestions.length > 0 ? `${listId}-${chosen}` : undefined}
          placeholder={
            dropping
              ? 'Drop files here'
              : answers
                ? 'Answer the question…'
                : `${running ? 'Steer' : 'Message'} ${who ?? 'the agent'}…`
          }
          onChange={(event) => {
            setText(event.target.value)
            setActive(0)
          }}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
          readOnly={sending}
          className={classes(
            'block max-h-[40dvh] w-full resize-none bg-transparent px-4',
            'pt-3 pb-1 text-base outline-none placeholder:text-ink-soft',
          )}
        />
        <div className="flex items-center gap-1 px-2 pb-2">
          <input
            ref={files}
            type="file"
            multiple
            hidden
            aria-label="Files"
            onChange={(event) => {
              void add([...(event.target.files ?? [])])
              event.target.value = ''
            }}
          />
          <IconButton
            small
            label="Add images, PDFs or text files (or paste them)"
            onClick={() => files.current?.click()}
          >
            <PlusIcon />
          </IconButton>
          <AgentPicker
            agents={agents}
            agent={who}
            onChoose={(next) => setDraft({ ...draft, agent: next === agent ? undefined : next })}
          />
          <ModelPicker
            agent={agents.find((each) => each.id === who)}
            chosen={draft.model}
            onChoose={(model) => setDraft({ ...draft, model })}
          />
          {session === undefined && (
            <span className="hidden text-xs whitespace-nowrap text-ink-soft @2xl:inline">
              <kbd className="font-mono">/</kbd> commands · <kbd className="font-mono">@</kbd> agents, files
            </span>
          )}
          <span className="ml-auto flex shrink-0 items-center gap-2">
            {meter}
            {running && onStop !== undefined && <StopButton onStop={onStop} />}
            {(!running || !empty) && (
              <Button
                kind="primary"
                small
                disabled={empty || sending}
                busy={sending}
                onClick={() => void send()}
                title={running && !answers ? 'The agent reads it at its next turn' : undefined}
              >
                <SendIcon /> {answers ? 'Answer' : running ? 'Steer' : sending ? 'Sending' : 'Send'}
              </Button>
            )}
          </span>
        </div>
      </div>
      <Help open={help} onClose={() => setHelp(false)} list={commands(skills)} />
    </div>
  )
}

function StopButton({ onStop }: { onStop: () => Promise<void> }) {
  const [busy, setBusy] = useState(false)
  return (
    <Button
      small
      busy={busy}
      title="Stop the run (Esc twice)"
      onClick={async () => {
        setBusy(true)
        await onStop().finally(() => setBusy(false))
      }}
    >
      <StopIcon className="text-failed" /> Stop
    </Button>
  )
}

function Help({ open, onClose, list }: { open: boolean; onClose: () => void; list: Suggestion[] }) {
  return (
    <Dialog open={open} onOpenChange={(is) => !is && onClose()} title="Commands and keys">
      <dl className="mt-3 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 text-sm">
        {[
          ...list,
          { insert: '', name: '@agent …', about: 'sends the message to another agent' },
          { insert: '', name: '@file', about: 'attaches a file of the project' },
          { insert: '', name: '↑ ↓', about: 'your earlier messages' },
          { insert: '', name: 'Shift ↵', about: 'a new line' },
          { insert: '', name: 'Esc Esc', about: 'stops the run' },
        ].map(({ name, about }) => (
          <div key={name} className="contents">
            <dt className="font-mono whitespace-nowrap">{name}</dt>
            <dd className="text-ink-soft">{about}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
