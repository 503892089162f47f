import './theme.css'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { makeRouter } from './router'
import { Problem } from './wire/api'
import { onReturn } from './wire/connection'

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => failures < 2 && error instanceof Problem && error.again,
    },
  },
})

// When the server can be reached again, requests that failed because of it are repeated.
onReturn(() => void queries.refetchQueries({ predicate: ({ state }) => state.status === 'error' }))

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={makeRouter()} />
    </QueryClientProvider>
  </StrictMode>,
)
