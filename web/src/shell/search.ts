import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { ask } from '../wire/api'
import type { SearchAnswer } from '../wire/native.generated'

const pause = 150 // milliseconds without typing before the request

// useSettled returns a text after it has not changed for a moment.
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), pause)
    return () => clearTimeout(timer)
  }, [text])
  return text === '' ? '' : settled
}

// usePassages finds messages with all words of a text. Fewer than two characters find too many.
export function usePassages(text: string, limit: number) {
  const words = useSettled(text)
  const wanted = [...words].length > 1
  const { data, isFetching } = useQuery({
    queryKey: ['search', words, limit],
    queryFn: ({ signal }) =>
      ask<SearchAnswer>('GET', `/api/v1/search?${new URLSearchParams({ q: words, limit: String(limit) })}`, { signal }),
    enabled: wanted,
    placeholderData: keepPreviousData,
    staleTime: 5_000,
  })
  return {
    passages: wanted ? (data?.passages ?? []) : [],
    indexing: wanted && data?.indexing === true,
    searching: isFetching || words !== text,
  }
}
