import { useEffect, useState, type ReactNode } from 'react'
import { CopyButton } from '../../ui/CopyButton'
import type { Piece } from '../model/highlight'
import { Prose } from './Prose'

interface CodeBlockProps {
  code: string
  language?: string
  live?: boolean // still growing: colours are added when it has ended
}

const most = 50_000 // characters that are coloured

export function CodeBlock({ code, language, live }: CodeBlockProps) {
  const [pieces, setPieces] = useState<{ code: string; list: Piece[] } | null>(null)
  useEffect(() => {
    if (live || language === undefined || code.length > most) return
    let gone = false
    import('../model/highlight')
      .then((module) => module.highlight(code, language))
      .then((list) => !gone && list !== null && setPieces({ code, list }))
      .catch(() => {}) // it is readable without colours
    return () => {
      gone = true
    }
  }, [code, language, live])

  return (
    <div className="group/code my-3 overflow-hidden rounded-lg border border-line bg-raised">
      <div className="flex min-h-8 items-center border-b border-line pr-1 pl-3 font-mono text-xs text-ink-soft">
        <span className="grow">{language ?? 'text'}</span>
        <CopyButton text={code} label="Copy code" />
      </div>
      <pre
        dir="ltr"
        tabIndex={0}
        className="overflow-x-auto px-3 py-2.5 font-mono text-sm leading-5 [unicode-bidi:isolate]"
      >
        <code>{pieces?.code === code ? pieces.list.map(show) : <Prose>{code}</Prose>}</code>
      </pre>
    </div>
  )
}

function show(piece: Piece, at: number): ReactNode {
  if (typeof piece === 'string') return <Prose key={at}>{piece}</Prose>
  return (
    <span key={at} className={piece.look}>
      {piece.inside.map(show)}
    </span>
  )
}
