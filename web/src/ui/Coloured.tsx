import { useEffect, useState, type ReactNode } from 'react'
import type { Piece } from '../chat/model/highlight'
import { Exact } from './Mono'

const most = 200_000 // characters that are coloured

// useColours returns the lines of a file in coloured pieces; null: not yet, or not at all. A file is readable without
// colours.
export function useColours(lines: string[], path: string): Piece[][] | null {
  const text = lines.join('\n')
  const [found, setFound] = useState<{ text: string; lines: Piece[][] } | null>(null)
  useEffect(() => {
    let gone = false
    if (text.length > most) return
    import('../chat/model/highlight')
      .then((module) => module.highlight(text, path.slice(path.lastIndexOf('.') + 1).toLowerCase()))
      .then((pieces) => !gone && setFound(pieces === null ? null : { text, lines: linesOf(pieces) }))
      .catch(() => {})
    return () => {
      gone = true
    }
  }, [text, path])
  return found?.text === text ? found.lines : null
}

// linesOf splits pieces at line ends. A piece over several lines becomes one in each of them.
export function linesOf(pieces: Piece[]): Piece[][] {
  const lines: Piece[][] = [[]]
  const put = (piece: Piece) => {
    if (typeof piece === 'string') {
      const [first = '', ...rest] = piece.split('\n')
      if (first !== '') lines.at(-1)!.push(first)
      for (const line of rest) lines.push(line === '' ? [] : [line])
      return
    }
    const [first = [], ...rest] = linesOf(piece.inside)
    if (first.length > 0) lines.at(-1)!.push({ look: piece.look, inside: first })
    for (const inside of rest) lines.push(inside.length === 0 ? [] : [{ look: piece.look, inside }])
  }
  pieces.forEach(put)
  return lines
}

// Coloured shows pieces; deceptive characters in them are shown by name, as in Mono.
export function Coloured({ pieces }: { pieces: Piece[] }): ReactNode {
  return pieces.map((piece, at) =>
    typeof piece === 'string' ? (
      <Exact key={at}>{piece}</Exact>
    ) : (
      <span key={at} className={piece.look}>
        <Coloured pieces={piece.inside} />
      </span>
    ),
  )
}
