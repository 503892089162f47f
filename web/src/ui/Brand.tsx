import type { ComponentProps } from 'react'

// The mark is a P that is also a speech bubble: its foot is the tail. public/parley.svg has the same paths.
const p = 'M9 6h10a8 8 0 0 1 0 16h-4l-6 5.500zM14.500 11.500v5H19a2.500 2.500 0 0 0 0-5z'

export function Mark(props: ComponentProps<'svg'>) {
  return (
    <svg viewBox="0 0 32 32" width="1em" height="1em" aria-hidden="true" focusable="false" {...props}>
      <rect width="32" height="32" rx="8" className="fill-brand" />
      <path d={p} fillRule="evenodd" fill="#fff" />
    </svg>
  )
}

// Wordmark is the name as a drawing. There is always a text beside it for screen readers.
export function Wordmark(props: ComponentProps<'svg'>) {
  return (
    <svg
      viewBox="0 0 63 28"
      height="1em"
      fill="none"
      stroke="currentColor"
      strokeWidth="2.500"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
      {...props}
    >
      <path d="M2 21V6.500h5.200a4.200 4.200 0 0 1 0 8.400H2" />
      <path d="M22.300 11.400V21M22.300 16.200a4.600 4.800 0 1 1-9.200 0 4.600 4.800 0 0 1 9.200 0z" />
      <path d="M27.300 21v-9.600M27.300 15.600c0-2.700 1.500-4.200 4-4.200" />
      <path d="M35 5.500V21" />
      <path d="M39.600 16.200h9.100a4.550 4.800 0 1 0-1.500 3.500" />
      <path d="M52.500 11.400l4.300 9.400M61 11.400l-5.300 12.100a2.500 2.500 0 0 1-2.700 1.500" />
    </svg>
  )
}
