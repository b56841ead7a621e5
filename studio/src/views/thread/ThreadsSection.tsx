export default function ThreadsSection() {
  return null;
}
