export function RunPage() {
  return <p className="p-6">RunPage</p>
}
