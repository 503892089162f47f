import { useEffect, useState, type ReactNode } from 'react'
import type { Piece } from '../chat/model/highlight'
import { Exact } from '../ui/Mono'

const most = 200_000 // characters that are coloured

// Code is a file with numbers at its lines.
export function Code({ text, path }: { text: string; path: string }) {
  const [pieces, setPieces] = useState<Piece[] | null>(null)
  useEffect(() => {
    let gone = false
    setPieces(null)
    if (text.length > most) return
    import('../chat/model/highlight')
      .then((module) => module.highlight(text, path.slice(path.lastIndexOf('.') + 1).toLowerCase()))
      .then((list) => !gone && setPieces(list))
      .catch(() => {}) // without colours it reads as well
    return () => {
      gone = true
    }
  }, [text, path])
  const lines = text.replace(/\n$/, '').split('\n').length
  return (
    <div
      tabIndex={0}
      role="group"
      aria-label={`Content of ${path}`}
      className="flex max-h-[70dvh] overflow-auto bg-paper font-mono text-xs leading-5"
    >
      <pre aria-hidden="true" className="shrink-0 px-3 py-2 text-right text-ink-soft select-none">
        {Array.from({ length: lines }, (_, at) => at + 1).join('\n')}
      </pre>
      <pre dir="ltr" className="grow py-2 pr-4 [unicode-bidi:isolate]">
        <code>{pieces === null ? <Exact>{text}</Exact> : pieces.map(show)}</code>
      </pre>
    </div>
  )
}

function show(piece: Piece, at: number): ReactNode {
  if (typeof piece === 'string') return <Exact key={at}>{piece}</Exact>
  return (
    <span key={at} className={piece.look}>
      {piece.inside.map(show)}
    </span>
  )
}
