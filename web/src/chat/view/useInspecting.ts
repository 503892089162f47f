import { useState } from 'react'

const key = 'parley.inspector'

// useInspecting remembers whether the run's details are shown. Where they would
// cover the conversation they are not, until asked for.
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
      // then it is not remembered
    }
  }
  return [is, change]
}
