import { useLayoutEffect, useMemo, useRef, useState, type RefObject } from 'react'
import type { Piece } from '../chat/model/highlight'
import { Button } from './Button'
import { classes } from './classes'
import { count, parseDiff, sideBySide, titleOf, type FileDiff, type Hunk, type Line, type Mark } from './unified'
import { Coloured, useColours } from './Coloured'
import { Exact, Mono } from './Mono'

const roomForTwo = 760 // pixels; below that, two columns cut off most lines

interface DiffProps {
  text: string
  label?: string
  named?: boolean // it names its file and counts the lines; false: the page around it does
}

// Diff shows a unified diff, or a patch: side by side if there is room, else in one column, or as the reader chooses.
export function Diff({ text, label = 'Changes', named = true }: DiffProps) {
  const files = useMemo(() => parseDiff(text), [text])
  const section = useRef<HTMLElement>(null)
  const narrow = useNarrow(section)
  const [chosen, choose] = useState<boolean>()
  const unified = chosen ?? narrow
  const { added, removed } = count(files)
  const [only, ...others] = files
  const single = only !== undefined && others.length === 0
  const choice = !files.every(oneSided)
  return (
    <section ref={section} aria-label={label} className="overflow-hidden rounded-md border border-line text-xs">
      {(named || !single || choice) && (
        <header
          className={classes(
            'flex min-h-9 items-center gap-3 border-b border-line bg-raised px-3 py-1',
            !named && single && 'max-sm:hidden',
          )}
        >
          {single ? (
            named && <FileName file={only} />
          ) : (
            <span className="text-ink-soft">{files.length} files</span>
          )}
          {(named || !single) && <Counts added={added} removed={removed} />}
          {choice && (
            <Button small kind="quiet" className="ml-auto max-sm:hidden" onClick={() => choose(!unified)}>
              {unified ? 'Side by side' : 'One column'}
            </Button>
          )}
        </header>
      )}
      <div className="max-h-[60dvh] overflow-y-auto">
        {files.map((file, at) => (
          <File key={at} file={file} unified={unified} named={!single} />
        ))}
      </div>
    </section>
  )
}

// useNarrow measures the element, not the window: a conversation is one column beside others.
function useNarrow(element: RefObject<HTMLElement | null>): boolean {
  const [narrow, setNarrow] = useState(true)
  useLayoutEffect(() => {
    const measure = () => setNarrow((element.current?.clientWidth ?? 0) < roomForTwo)
    measure()
    if (element.current === null || typeof ResizeObserver === 'undefined') return
    const watch = new ResizeObserver(measure)
    watch.observe(element.current)
    return () => watch.disconnect()
  }, [element])
  return narrow
}

export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span className="whitespace-nowrap font-mono">
      <span className="text-done">+{added}</span> <span className="text-failed">−{removed}</span>
    </span>
  )
}

type Colours = Map<Line, Piece[]>

function FileName({ file }: { file: FileDiff }) {
  return (
    <Mono bare className="min-w-0 font-medium">
      {titleOf(file)}
    </Mono>
  )
}

function File({ file, unified, named }: { file: FileDiff; unified: boolean; named: boolean }) {
  const lines = useMemo(() => file.hunks.flatMap((hunk) => hunk.lines), [file])
  const coloured = useColours(
    useMemo(() => lines.map((line) => line.text), [lines]),
    file.to || file.from,
  )
  const colours: Colours = useMemo(
    () => new Map(coloured === null ? [] : lines.map((line, at) => [line, coloured[at] ?? [line.text]])),
    [lines, coloured],
  )
  const one = unified || oneSided(file)
  const numbered = lines.some((line) => line.before !== undefined || line.after !== undefined)
  const columns = (one ? 1 : 2) * 2 + (numbered ? 2 : 0)
  return (
    <div className="border-t border-line first:border-t-0">
      {named && (
        <p className="sticky top-0 border-b border-line bg-raised px-3 py-1 last:border-b-0">
          <FileName file={file} />
        </p>
      )}
      {file.hunks.length > 0 && (
        <div tabIndex={0} role="region" aria-label={titleOf(file)} className="overflow-x-auto">
          <table className="w-full border-collapse font-mono leading-5">
            {file.hunks.map((hunk, at) => (
              <tbody key={at}>
                <Heading hunk={hunk} first={at === 0} across={columns} />
                {one ? (
                  <Unified hunk={hunk} colours={colours} numbered={numbered} />
                ) : (
                  <Beside hunk={hunk} colours={colours} numbered={numbered} />
                )}
              </tbody>
            ))}
          </table>
        </div>
      )}
      {file.notes.filter((note) => !ordinary.test(note)).map((note, at) => (
        <p key={at} className="px-3 py-1 text-ink-soft">
          <Mono bare>{note}</Mono>
        </p>
      ))}
    </div>
  )
}

// The mode of an ordinary file is no news: the title says that the file is new or deleted.
const ordinary = /^(new|deleted) file mode 100644$/

// A file that only gains or only loses lines is shown in one column.
function oneSided(file: FileDiff): boolean {
  const { added, removed } = count([file])
  return added === 0 || removed === 0
}

// Heading separates a hunk from the one before it, and shows its place, if that is known.
function Heading({ hunk, first, across }: { hunk: Hunk; first: boolean; across: number }) {
  const line = hunk.lines[0]
  const where = line?.before ?? line?.after
  if (first && hunk.heading === '' && where === undefined) return null
  return (
    <tr className="bg-sunken text-ink-soft">
      <td colSpan={across} className={classes('px-3 py-0.5', !first && 'border-t border-line')}>
        <span aria-hidden="true" className="mr-2 select-none">
          ⋯
        </span>
        {where !== undefined && <span className="mr-3">{`line ${where}`}</span>}
        <Exact>{hunk.heading}</Exact>
      </td>
    </tr>
  )
}

const looks: Record<Mark, string> = { same: '', add: 'bg-done-soft', remove: 'bg-failed-soft' }
const signs: Record<Mark, string> = { same: ' ', add: '+', remove: '−' }
const spoken: Record<Mark, string | undefined> = { same: undefined, add: 'added', remove: 'removed' }

interface CellsProps {
  line: Line | undefined
  numbers: (number | undefined)[] // one per column
  colours: Colours
  half?: boolean
}

function Cells({ line, numbers, colours, half }: CellsProps) {
  const look = line === undefined ? 'bg-raised' : looks[line.mark]
  const pieces = line === undefined ? undefined : colours.get(line)
  return (
    <>
      {numbers.map((number, at) => (
        <td
          key={at}
          className={classes('w-9 min-w-9 border-r border-line px-1.5 text-right align-top text-ink-soft', look)}
        >
          <span className="select-none">{number}</span>
        </td>
      ))}
      <td className={classes('w-4 pl-1 align-top select-none', look)}>
        {line !== undefined && line.mark !== 'same' && (
          <span role="img" aria-label={spoken[line.mark]}>
            {signs[line.mark]}
          </span>
        )}
      </td>
      <td className={classes('pr-3 align-top', half && 'w-1/2', look)}>
        {line !== undefined &&
          (pieces === undefined ? (
            <Mono bare>{line.text}</Mono>
          ) : (
            <code
              dir="ltr"
              className="font-mono [overflow-wrap:anywhere] break-words whitespace-pre-wrap [unicode-bidi:isolate]"
            >
              <Coloured pieces={pieces} />
            </code>
          ))}
        {line?.open && <span className="ml-2 text-ink-soft">(no newline at the end)</span>}
      </td>
    </>
  )
}

interface LinesProps {
  hunk: Hunk
  colours: Colours
  numbered: boolean // a patch has no line numbers
}

function Beside({ hunk, colours, numbered }: LinesProps) {
  return sideBySide(hunk.lines).map((row, at) => (
    <tr key={at}>
      <Cells line={row.left} numbers={numbered ? [row.left?.before] : []} colours={colours} half />
      <Cells line={row.right} numbers={numbered ? [row.right?.after] : []} colours={colours} half />
    </tr>
  ))
}

function Unified({ hunk, colours, numbered }: LinesProps) {
  return hunk.lines.map((line, at) => (
    <tr key={at}>
      <Cells line={line} numbers={numbered ? [line.before, line.after] : []} colours={colours} />
    </tr>
  ))
}
