import { useEffect, useRef, useState } from 'react'
import { classes } from '../../ui/classes'
import type { Formula as Math } from '../model/math'
import { Prose } from './Prose'

// Formula shows math. The library is loaded with the first formula. Until then, or if the text is not math, the text is
// shown. A formula is data: it can set no links, and load nothing.
export function Formula({ formula: { tex, display } }: { formula: Math }) {
  const place = useRef<HTMLSpanElement>(null)
  const [drawn, setDrawn] = useState(false)
  useEffect(() => {
    let gone = false
    setDrawn(false)
    import('./katex')
      .then(({ draw }) => {
        if (gone || place.current === null) return
        draw(tex, display, place.current)
        setDrawn(true)
      })
      .catch(() => {}) // the text stays
    return () => {
      gone = true
    }
  }, [tex, display])
  return (
    <>
      <span
        ref={place}
        tabIndex={display && drawn ? 0 : undefined}
        role={display && drawn ? 'math' : undefined}
        aria-label={display && drawn ? tex : undefined}
        className={classes(!drawn && 'hidden', display && 'block overflow-x-auto overflow-y-hidden py-1 text-center')}
      />
      {!drawn && (
        <code className={classes('font-mono text-[0.88em] [overflow-wrap:anywhere]', display && 'block text-center')}>
          <Prose>{tex}</Prose>
        </code>
      )}
    </>
  )
}
