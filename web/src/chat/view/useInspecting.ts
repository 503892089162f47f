import { useState } from 'react'

const key = 'parley.inspector'

// useInspecting remembers whether the run's details are shown. If they would
// cover the conversation, they stay hidden until the user opens them.
export function useInspecting(): [boolean, (is: boolean) => void] {
  const [is, setIs] = useState(() => {
    try {
      return window.innerWidth >= 1280 && localStorage.getItem(key) !== 'hidden'
    } catch {
      return false
    }
  })
  const change = (next: boolean) => {
    setIs(next)
    try {
      if (window.innerWidth >= 1024) localStorage.setItem(key, next ? 'shown' : 'hidden')
    } catch {
      // storage is full or forbidden: it is not remembered
    }
  }
  return [is, change]
}
