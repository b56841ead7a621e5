export default function CronsView() {
  return null;
}
