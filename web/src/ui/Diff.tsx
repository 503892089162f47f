import { useMemo, useState } from 'react'
import { Button } from './Button'
import { classes } from './classes'
import { count, parseDiff, sideBySide, titleOf, type FileDiff, type Hunk, type Line, type Mark } from './unified'
import { Mono } from './Mono'

// Diff shows a unified diff, or a patch, side by side; where there is no room for
// two columns, or when asked, in one.
export function Diff({ text, label = 'Changes' }: { text: string; label?: string }) {
  const files = useMemo(() => parseDiff(text), [text])
  const [unified, setUnified] = useState(() => window.innerWidth < 720)
  const { added, removed } = count(files)
  return (
    <section aria-label={label} className="overflow-hidden rounded-md border border-line text-xs">
      <header className="flex items-center gap-3 border-b border-line bg-raised px-3 py-1.5">
        <span className="grow text-ink-soft">
          {files.length === 1 ? '1 file' : `${files.length} files`} <Counts added={added} removed={removed} />
        </span>
        {!files.every(oneSided) && (
          <Button small kind="quiet" onClick={() => setUnified(!unified)}>
            {unified ? 'Side by side' : 'One column'}
          </Button>
        )}
      </header>
      <div className="max-h-[60dvh] overflow-y-auto">
        {files.map((file, at) => (
          <File key={at} file={file} unified={unified} />
        ))}
      </div>
    </section>
  )
}

export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span className="whitespace-nowrap font-mono">
      <span className="text-done">+{added}</span> <span className="text-failed">−{removed}</span>
    </span>
  )
}

function File({ file, unified }: { file: FileDiff; unified: boolean }) {
  return (
    <div className="border-t border-line first:border-t-0">
      <p className="sticky top-0 border-b border-line bg-raised px-3 py-1 font-medium last:border-b-0">
        <Mono bare>{titleOf(file)}</Mono>
      </p>
      {file.hunks.length > 0 && (
        <div tabIndex={0} role="region" aria-label={titleOf(file)} className="overflow-x-auto">
          <table className="w-full border-collapse font-mono leading-5">
            {file.hunks.map((hunk, at) =>
              unified || oneSided(file) ? <Unified key={at} hunk={hunk} /> : <Beside key={at} hunk={hunk} />,
            )}
          </table>
        </div>
      )}
      {file.notes.map((note, at) => (
        <p key={at} className="px-3 py-1 text-ink-soft">
          <Mono bare>{note}</Mono>
        </p>
      ))}
    </div>
  )
}

// A file that only gains or only loses lines is shown in one column.
function oneSided(file: FileDiff): boolean {
  const { added, removed } = count([file])
  return added === 0 || removed === 0
}

function Heading({ hunk, across }: { hunk: Hunk; across: number }) {
  const first = hunk.lines[0]
  const where = first?.before ?? first?.after
  if (hunk.heading === '' && where === undefined) return null
  return (
    <tr className="bg-sunken text-ink-soft">
      <td colSpan={across} className="px-3 py-0.5">
        {where !== undefined && `line ${where} `}
        {hunk.heading}
      </td>
    </tr>
  )
}

const looks: Record<Mark, string> = { same: '', add: 'bg-done-soft', remove: 'bg-failed-soft' }
const signs: Record<Mark, string> = { same: ' ', add: '+', remove: '−' }
const spoken: Record<Mark, string | undefined> = { same: undefined, add: 'added', remove: 'removed' }

function Cells({ line, number, half }: { line: Line | undefined; number: number | undefined; half?: boolean }) {
  const look = line === undefined ? 'bg-raised' : looks[line.mark]
  return (
    <>
      <td className={classes('w-10 select-none px-2 text-right align-top text-ink-soft', look)}>{number}</td>
      <td className={classes('w-4 select-none align-top', look)}>
        {line !== undefined && line.mark !== 'same' && <span aria-label={spoken[line.mark]}>{signs[line.mark]}</span>}
      </td>
      <td className={classes('pr-3 align-top', half && 'w-1/2', look)}>
        {line !== undefined && <Mono bare>{line.text}</Mono>}
        {line?.open && <span className="ml-2 text-ink-soft">(no newline at the end)</span>}
      </td>
    </>
  )
}

function Beside({ hunk }: { hunk: Hunk }) {
  return (
    <tbody>
      <Heading hunk={hunk} across={6} />
      {sideBySide(hunk.lines).map((row, at) => (
        <tr key={at}>
          <Cells line={row.left} number={row.left?.before} half />
          <Cells line={row.right} number={row.right?.after} half />
        </tr>
      ))}
    </tbody>
  )
}

function Unified({ hunk }: { hunk: Hunk }) {
  return (
    <tbody>
      <Heading hunk={hunk} across={3} />
      {hunk.lines.map((line, at) => (
        <tr key={at}>
          <Cells line={line} number={line.after ?? line.before} />
        </tr>
      ))}
    </tbody>
  )
}
