import { useCallback, useEffect, useState } from 'react'
import { readDraft, writeDraft, type Draft } from '../model/draft'

// useDraft is the draft under a key, and how to change it; a change is kept at once.
export function useDraft(key: string): [Draft, (draft: Draft) => void] {
  const [draft, setDraft] = useState(() => readDraft(key))
  useEffect(() => setDraft(readDraft(key)), [key])
  const change = useCallback(
    (next: Draft) => {
      setDraft(next)
      writeDraft(key, next)
    },
    [key],
  )
  return [draft, change]
}
