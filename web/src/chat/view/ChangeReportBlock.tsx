import { useMemo } from 'react'
import type { FileChange } from '../../wire/bus.generated'
import { Counts, Diff } from '../../ui/Diff'
import { Mono } from '../../ui/Mono'
import { count, parseDiff } from '../../ui/unified'
import { Fold } from './Fold'

// ChangeReportBlock lists the changed files, each with its diff.
export function ChangeReportBlock({ files, truncated }: { files: FileChange[]; truncated: number }) {
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
    </section>
  )
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
        <Diff text={file.diff} label={`Changes of ${file.path}`} />
      </div>
    </Fold>
  )
}
