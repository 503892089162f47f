import { useMemo, useState } from 'react'
import { ask } from '../../wire/api'
import type { FileChange } from '../../wire/bus.generated'
import { newID } from '../../wire/uuid'
import { Button } from '../../ui/Button'
import { Confirm } from '../../ui/Confirm'
import { Counts, Diff } from '../../ui/Diff'
import { Mono } from '../../ui/Mono'
import { count, parseDiff } from '../../ui/unified'
import { useChat } from './chatContext'
import { Fold } from './Fold'

interface ChangeReport {
  run?: string // the run of the changes; none: a model wrote this
  files: FileChange[]
  truncated: number
}

// ChangeReportBlock lists the changed files, each with its diff, and offers to undo the changes.
export function ChangeReportBlock({ run, files, truncated }: ChangeReport) {
  const all = files.length + truncated
  return (
    <section aria-label="Changed files" className="rounded-lg border border-line bg-raised px-4 py-3">
      <h2 className="mb-1 text-sm font-semibold">Changed {all === 1 ? '1 file' : `${all} files`}</h2>
      <ul>
        {files.map((file) => (
          <li key={file.path}>
            <Changed file={file} open={files.length === 1} />
          </li>
        ))}
      </ul>
      {truncated > 0 && <p className="mt-1 text-xs text-ink-soft">and {truncated} more files that are not listed</p>}
      {run !== undefined && <Undo run={run} files={files} whole={truncated === 0} />}
    </section>
  )
}

function Undo({ run, files, whole }: { run: string; files: FileChange[]; whole: boolean }) {
  const { mayMessage, working, undone } = useChat()
  const [asking, setAsking] = useState(false)
  const [once, setOnce] = useState('')
  const done = undone[run]
  if (done !== undefined && done.problem === undefined)
    return (
      <p role="status" className="mt-2 text-sm text-ink-soft">
        Undone: {done.files.map((file) => `${file.path} was ${file.did.replace('_', ' ')}`).join(', ')}.
      </p>
    )
  if (!mayMessage || !whole) return null
  return (
    <>
      {done !== undefined && (
        <p role="status" className="mt-2 text-sm text-failed">
          The changes were not undone. {done.problem}
        </p>
      )}
      <Button
        className="mt-2"
        disabled={working}
        title={working ? 'The agent is working. Changes can be undone when it has ended.' : undefined}
        onClick={() => {
          setOnce(newID())
          setAsking(true)
        }}
      >
        Undo these changes
      </Button>
      {asking && (
        <Confirm
          title="Undo these changes?"
          yes="Undo"
          no="Keep them"
          failed="Nothing was undone."
          act={() => ask('POST', `/api/v1/runs/${run}/undo`, { body: {}, once })}
          onClose={() => setAsking(false)}
        >
          The files get the content that they had before the run. Nothing happens if one of them has changed since.
          <ul className="mt-2 text-left">
            {files.map((file) => (
              <li key={file.path} className="flex gap-2">
                <Mono className="min-w-0 break-all bg-transparent px-0 text-xs text-ink">{file.path}</Mono>
                <span className="ml-auto shrink-0">{fate(file.summary)}</span>
              </li>
            ))}
          </ul>
        </Confirm>
      )}
    </>
  )
}

// fate describes what undoing a change does to its file.
function fate(summary: string): string {
  if (summary.startsWith('Added')) return 'will be deleted'
  if (summary === 'Deleted') return 'will be brought back'
  if (summary === 'Renamed') return 'will get its old name'
  return 'will be restored'
}

function Changed({ file, open }: { file: FileChange; open: boolean }) {
  const counts = useMemo(() => count(parseDiff(file.diff)), [file.diff])
  const head = (
    <>
      <Mono className="min-w-0 truncate bg-transparent px-0 text-xs text-ink">{file.path}</Mono>
      <span className="shrink-0 text-xs">{file.summary.toLowerCase()}</span>
      {file.diff !== '' && (
        <span className="ml-auto shrink-0 text-xs">
          <Counts added={counts.added} removed={counts.removed} />
        </span>
      )}
    </>
  )
  if (file.diff === '') return <div className="flex min-h-7 items-center gap-2 pl-5 text-sm text-ink-soft">{head}</div>
  return (
    <Fold head={head} open={open}>
      <div className="mt-1 mb-2 bg-paper">
        <Diff text={file.diff} label={`Changes of ${file.path}`} named={false} />
      </div>
    </Fold>
  )
}
