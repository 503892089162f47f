import { useCallback, useEffect, useState } from 'react'
import { readAttachments, readDraft, writeAttachments, writeDraft, type Draft } from '../model/draft'
import type { Attachments } from '../model/files'

// useDraft returns the draft of a key and a function to change it; a change is stored at once.
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

// useAttachments does the same for the files of the draft.
export function useAttachments(key: string): [Attachments, (attachments: Attachments) => void] {
  const [attachments, setAttachments] = useState(() => readAttachments(key))
  useEffect(() => setAttachments(readAttachments(key)), [key])
  const change = useCallback(
    (next: Attachments) => {
      setAttachments(next)
      writeAttachments(key, next)
    },
    [key],
  )
  return [attachments, change]
}
