import { useState } from 'react'
import { Button } from '../ui/Button'
import { CopyButton } from '../ui/CopyButton'
import { Diff } from '../ui/Diff'
import { WarningIcon } from '../ui/icons'
import { Exact, Mono } from '../ui/Mono'
import { tricky, type Trick } from '../ui/visible'
import { useReplaced, wordsOf } from './replaced'
import { deleted, editHeading, editOf, headingText, readShow } from './show'
import { classes } from '../ui/classes'

interface WhatProps {
  tool: string
  show: string
  args?: string // of the call: they may contain hidden characters, too
  why?: string // the only reason why the call asks
  project?: string // the project of the call; none: the first
}

// What shows exactly the effect of a call: the command and its parts, or the change to files, with warnings.
export function What({ tool, show, args = '', why, project }: WhatProps) {
  const [raw, setRaw] = useState(false)
  const shown = readShow(tool, show)
  const patch = editOf(tool, show)
  const replaced = useReplaced(tool, show, project)
  const notes = [
    ...(replaced === null ? [] : [wordsOf(replaced)]),
    ...(patch === undefined ? [] : deleted(patch)).map((name) => `It deletes ${name}.`),
    ...(shown?.risks ?? []).map((risk) => `It ${risk}.`),
    ...tricky(show + args + (patch ?? '')).map((trick) => warnings[trick]),
  ]
  const plain = raw || (shown === undefined && patch === undefined)
  return (
    <div className="flex flex-col gap-2">
      {why !== undefined && <Note>This needs approval because {why}.</Note>}
      {plain ? (
        <Mono block className="max-h-[50dvh]">
          {show}
        </Mono>
      ) : shown !== undefined ? (
        <>
          <p className="text-xs text-ink-soft">{headingText(shown.heading)}</p>
          <Mono block quoted className="max-h-[50dvh] border border-line text-base">
            {shown.command}
          </Mono>
          {shown.parts.length > 0 && (
            <div className="text-sm">
              <p className="text-xs text-ink-soft">These commands are in it:</p>
              <ol className="mt-1 flex list-decimal flex-col gap-1 pl-6 marker:text-xs marker:text-ink-soft">
                {shown.parts.map((part, at) => (
                  <li key={at}>
                    <Mono quoted>{part}</Mono>
                  </li>
                ))}
              </ol>
            </div>
          )}
          {shown.because !== undefined && (
            <p className="text-sm text-ink-soft">This needs approval because {shown.because}.</p>
          )}
        </>
      ) : (
        <>
          {tool === 'write_file' && (
            <p className="text-xs text-ink-soft">
              {replaced === null ? 'This is a new file. Its full contents:' : 'The full new contents of the file:'}
            </p>
          )}
          {tool === 'edit_file' && (
            <p className="text-xs text-ink-soft">
              <Exact>{editHeading(show)}</Exact>
            </p>
          )}
          <Diff text={patch!} label="Proposed changes" />
        </>
      )}
      {notes.length > 0 && (
        <ul aria-label="Warnings" className="flex flex-wrap gap-1">
          {notes.map((note) => (
            <li key={note}>
              <Note>
                <Exact>{note}</Exact>
              </Note>
            </li>
          ))}
        </ul>
      )}
      <div className="-ml-2 flex flex-wrap">
        <CopyButton words text={patch !== undefined && !raw ? show : (shown?.command ?? show)} />
        {(shown !== undefined || patch !== undefined) && (
          <Button small kind="quiet" aria-pressed={raw} onClick={() => setRaw(!raw)}>
            {raw ? 'Show it in parts' : 'Show the exact text'}
          </Button>
        )}
      </div>
    </div>
  )
}

function Note({ children }: { children: React.ReactNode }) {
  return (
    <span
      className={classes(
        'inline-flex items-center gap-1.5 rounded',
        'bg-waiting-soft px-2 py-0.5 text-xs font-medium text-waiting',
      )}
    >
      <WarningIcon className="shrink-0" />
      <span>{children}</span>
    </span>
  )
}

const warnings: Record<Trick, string> = {
  ansi: 'It contains terminal escape sequences.',
  control: 'It contains control characters.',
  bidi: 'It contains characters that change the direction of text.',
  invisible: 'It contains invisible characters.',
  space: 'It contains unusual space characters.',
  lookalike: 'It contains letters that look like other letters.',
  escape: 'It contains characters written as escapes.',
}
