import { useEffect, useRef, useState, type RefObject } from 'react'

// A card can be answered only after it has not moved for a moment. A click just when a card appears or moves under the
// pointer was meant for something else.
export const settleMs = 600

const every = 100

interface Steady {
  steady: boolean // the element has not moved for a moment
  still: () => boolean // the same, checked right now
  shown: () => boolean // it has been visible for a moment, even if it moved: this counts for keys
}

// useSteady watches the place of an element.
export function useSteady(element: RefObject<HTMLElement | null>, watching: boolean): Steady {
  const [steady, setSteady] = useState(false)
  const began = useRef(Infinity)
  const last = useRef({ place: nowhere, since: Infinity })
  const look = () => {
    const place = placeOf(element.current)
    const { since } = last.current
    last.current = { place, since: moved(last.current.place, place) ? performance.now() : since }
    return performance.now() - last.current.since >= settleMs
  }
  useEffect(() => {
    if (!watching) return
    began.current = performance.now()
    last.current = { place: placeOf(element.current), since: began.current }
    const timer = setInterval(() => setSteady(look()), every)
    return () => {
      clearInterval(timer)
      began.current = last.current.since = Infinity
      setSteady(false)
    }
  }, [element, watching])
  return { steady, still: look, shown: () => performance.now() - began.current >= settleMs }
}

interface Place {
  seen: number // position in the window
  top: number // position in the scrolled content
  left: number
}

const nowhere: Place = { seen: 0, top: 0, left: 0 }

function placeOf(element: HTMLElement | null): Place {
  const { top = 0, left = 0 } = element?.getBoundingClientRect() ?? {}
  let scrolled = 0
  for (let above = element?.parentElement; above; above = above.parentElement) scrolled += above.scrollTop
  return { seen: Math.round(top), top: Math.round(top + scrolled), left: Math.round(left) }
}

// moved compares two places. A scrolling reader changes only the position in the window; text that grows above a list
// which follows its end changes only the position in the content. Neither puts another button under the pointer
// unexpectedly.
function moved(before: Place, now: Place): boolean {
  return before.left !== now.left || (before.seen !== now.seen && before.top !== now.top)
}
