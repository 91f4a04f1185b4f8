(** Remark 1: its step "the sum of all zeta_n is zero" needs K = M. *)

Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums.
From Formal.scan_and_snap Require Import Decoder.
Open Scope R_scope.

(** @statement Scan and Snap: Remark 1
    @kind erratum
    @hypotheses M >= 2, 1 <= K <= M
    @formula the sum over the K classes of zeta_n is the zero vector if and only if K = M
    @note The paper's proof uses that it is zero. The factor by which attention is slower is not part of it. *)
Theorem remark1_step_needs_all_tokens :
  forall M K, (2 <= M)%nat -> (1 <= K <= M)%nat ->
  ((forall j, (j < M)%nat -> Sum K (fun n => zeta M n j) = 0) <-> K = M).
Proof.
  intros M K HM [PK HK]. assert (PM : 2 <= INR M) by (apply (le_INR 2); exact HM).
  assert (Inside : forall j, (j < K)%nat -> Sum K (fun n => zeta M n j) = INR M / (INR M - 1) * (1 - INR K / INR M)).
  { intros j L. unfold zeta.
    rewrite (Sum_ext K _ (fun n => INR M / (INR M - 1) * (kron j n * 1 - / INR M))) by (intros; ring).
    rewrite Sum_scal, Sum_minus, Sum_const, (Sum_kron_r K j (fun _ => 1) L). reflexivity. }
  split.
  - intro H. pose proof (H 0%nat ltac:(lia)) as Z. rewrite Inside in Z by lia.
    apply INR_eq. apply (f_equal (fun y => y * (INR M - 1))) in Z.
    replace (INR M / (INR M - 1) * (1 - INR K / INR M) * (INR M - 1)) with (INR M - INR K) in Z by (field; lra). lra.
  - intros -> j L. rewrite Inside by exact L. field. lra.
Qed.
